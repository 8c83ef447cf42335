"""The databases of releases as their users have them: dumps, heads of the log, bundles of
evidence, answers of the API, and archives. `tests/acceptance/keep_release.py` makes them.

`migrations/released.sha256` has the digests of the numbered files, which are never edited.
"""

import gzip
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

FOLDER: Final = Path(__file__).with_name("released")
DIGESTS: Final = Path(__file__).parents[2] / "migrations" / "released.sha256"


@dataclass(frozen=True, slots=True)
class KeptRelease:
    """Data of one release."""

    folder: Path

    @property
    def dump(self) -> str:
        """SQL that makes the database, as its owner."""
        return gzip.decompress((self.folder / "database.sql.gz").read_bytes()).decode()

    @property
    def head(self) -> Path:
        """The newest head of its log."""
        return self.folder / "head"

    @property
    def keys(self) -> Path:
        """The public keys that signed it."""
        return self.folder / "keys"

    @property
    def evidence(self) -> Path:
        """A bundle that it gave out."""
        return self.folder / "evidence.zip"

    @property
    def archived(self) -> Path:
        """A ZIP of a database, as `database.sql`, and of the files of its archives."""
        return self.folder / "archived.zip"

    @property
    def answers(self) -> dict[str, Any]:
        """Answers of its API by path."""
        answers: dict[str, Any] = json.loads(
            gzip.decompress((self.folder / "answers.json.gz").read_bytes())
        )
        return answers


def kept_releases() -> list[KeptRelease]:
    """Return all that are kept, oldest first."""
    return (
        [KeptRelease(folder) for folder in sorted(FOLDER.iterdir()) if folder.is_dir()]
        if FOLDER.is_dir()
        else []
    )
