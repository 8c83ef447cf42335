"""The code of an earlier commit, run by this environment: which commit, and whether its database can be upgraded to ours."""

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

ROOT: Final = Path(__file__).parents[2]
VARIABLE: Final = "STATESVC_SOAK_UPGRADE_FROM"
_TABLES: Final = ("--", ":(glob)migrations/[0-9]*.sql")


class NoEarlierCodeError(RuntimeError):
    """There is nothing to upgrade from; the message says why."""


@dataclass(frozen=True, slots=True)
class EarlierCode:
    """`folder` holds the packages of `commit`. `has_our_tables`: its numbered migrations are ours, so `migrate` upgrades its database."""

    commit: str
    folder: Path
    has_our_tables: bool

    @classmethod
    def unpack(cls, folder: Path) -> Self:
        """Unpack the code of the commit in STATESVC_SOAK_UPGRADE_FROM.

        By default until release 0.1 the oldest code that has today's tables, because a database of other tables is not upgraded: the
        commit that changed them last. Later the newest release. Raises NoEarlierCodeError.
        """
        commit = _git("rev-parse", "--verify", f"{os.environ.get(VARIABLE) or _default()}^{{commit}}")
        if not _git("diff", "--name-only", commit, "--", "statesvc", "events", "projections", "migrations"):
            raise NoEarlierCodeError(f"the code of {commit[:8]} is today's: name an earlier commit in {VARIABLE}")
        packed = subprocess.run(["git", "-C", ROOT, "archive", commit], capture_output=True, check=True).stdout
        folder.mkdir()
        subprocess.run(["tar", "-x", "-C", folder], input=packed, check=True)
        return cls(commit, folder, has_our_tables=not _git("diff", "--name-only", commit, *_TABLES))

    @property
    def environment(self) -> Mapping[str, str]:
        """Environment in which `python -m statesvc` is that code's, wherever it is started."""
        return {"PYTHONPATH": str(self.folder), "PYTHONSAFEPATH": "1"}

    def check(self) -> None:
        """Check that this is so."""
        command = [sys.executable, "-c", "import statesvc, events, projections, migrations; print(statesvc.__file__, migrations.__file__)"]
        found = subprocess.run(command, env={**os.environ, **self.environment}, capture_output=True, text=True, check=True).stdout
        assert found.count(str(self.folder)) == 2, found


def _default() -> str:
    releases = _git("tag", "--list", "v*", "--sort=-version:refname", "--no-contains", "HEAD").splitlines()
    return releases[0] if releases else _git("log", "-1", "--format=%H", *_TABLES)


def _git(*arguments: str) -> str:
    ended = subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        raise NoEarlierCodeError(f"git {arguments[0]}: {ended.stderr.strip()}")
    return ended.stdout.strip()
