"""The code of an earlier commit, run by this environment: which commit, and whether its database
can be upgraded to ours.
"""

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
_RELEASED: Final = ("--", "tests/migrations/released")
"""Kept when a release is cut."""


class NoEarlierCodeError(RuntimeError):
    """There is nothing to upgrade from; the message says why."""


@dataclass(frozen=True, slots=True)
class EarlierCode:
    """`folder` holds the packages of `commit`.

    `is_upgradable`: its numbered migrations stand unchanged among ours.
    """

    commit: str
    folder: Path
    is_upgradable: bool

    @classmethod
    def unpack(cls, folder: Path) -> Self:
        """Unpack the code of the commit in STATESVC_SOAK_UPGRADE_FROM.

        By default that of the newest release. Raises NoEarlierCodeError.
        """
        commit = _git(
            "rev-parse", "--verify", f"{os.environ.get(VARIABLE) or _newest_release()}^{{commit}}"
        )
        if not _git(
            "diff", "--name-only", commit, "--", "statesvc", "events", "projections", "migrations"
        ):
            raise NoEarlierCodeError(
                f"the code of {commit[:8]} is today's: name an earlier commit in {VARIABLE}"
            )
        packed = subprocess.run(
            ["git", "-C", ROOT, "archive", commit], capture_output=True, check=True
        ).stdout
        folder.mkdir()
        subprocess.run(["tar", "-x", "-C", folder], input=packed, check=True)
        return cls(
            commit,
            folder,
            is_upgradable=not _git("diff", "--name-only", "--diff-filter=a", commit, *_TABLES),
        )

    @property
    def environment(self) -> Mapping[str, str]:
        """Environment in which `python -m statesvc` is that code's, wherever it is started."""
        return {"PYTHONPATH": str(self.folder), "PYTHONSAFEPATH": "1"}

    def check(self) -> None:
        """Check that this is so."""
        command = [
            sys.executable,
            "-c",
            (
                "import statesvc, events, projections, migrations; print(statesvc.__file__,"
                " migrations.__file__)"
            ),
        ]
        found = subprocess.run(
            command,
            env={**os.environ, **self.environment},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        assert found.count(str(self.folder)) == 2, found


def _newest_release() -> str:
    return _git("log", "-1", "--format=%H", *_RELEASED)


def _git(*arguments: str) -> str:
    ended = subprocess.run(
        ["git", "-C", ROOT, *arguments], capture_output=True, text=True, check=False
    )
    if ended.returncode != 0:
        raise NoEarlierCodeError(f"git {arguments[0]}: {ended.stderr.strip()}")
    return ended.stdout.strip()
