"""Numbered files after the baseline block nobody and leave what the previous release uses."""

import re
import subprocess
import sysconfig
from pathlib import Path
from typing import Final

import pytest

from statesvc.database.migration_files import read_migrations
from tests.migrations.kept_release import DIGESTS

_EXCLUDED: Final = (
    # a file is one transaction, and the migrator sets both time-outs
    "prefer-robust-stmts",
    "require-lock-timeout",
    "require-statement-timeout",
    # a version, an ordinal or a count fits; each row is kept for years
    "prefer-bigint-over-int",
    "prefer-bigint-over-smallint",
)
_FOLDER: Final = DIGESTS.parent
_BASELINE: Final = 8
LATER: Final = [
    f"{one.label}.sql" for one in read_migrations().migrations if one.version > _BASELINE
]


def complaints(file: Path) -> str:
    squawk = Path(sysconfig.get_path("scripts"), "squawk")
    options = (
        "--reporter",
        "gcc",
        "--pg-version",
        "16",
        "--assume-in-transaction",
        "--exclude",
        ",".join(_EXCLUDED),
    )
    command: list[str | Path] = [squawk, *options, file]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


@pytest.mark.usefixtures("own_processes")
def test_later_files_block_nobody() -> None:
    assert {name: said for name in LATER if (said := complaints(_FOLDER / name))} == {}


def test_later_files_hold_no_lock_while_they_fill_or_rewrite_a_table() -> None:
    """Squawk has no rule for these."""
    for name in LATER:
        text = (_FOLDER / name).read_text("utf-8")
        assert not re.findall(
            r"^(?:UPDATE|DELETE|LOCK|CLUSTER|VACUUM)\b.*", text, re.MULTILINE | re.IGNORECASE
        ), name
