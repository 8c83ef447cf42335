"""The snapshot is what the migrations make, and later files block nobody."""

import asyncio
import difflib
import re
import subprocess
import sysconfig
from collections import Counter
from pathlib import Path
from typing import Any, Final

import pytest
from psycopg import AsyncConnection

from statesvc.database.migration_files import read_migrations
from statesvc.database.migrator import migrate
from tests.migrations.kept_release import DIGESTS
from tests.migrations.snapshot import COMMAND, FILE, snapshot

MAJOR = 18
"""Others word some definitions in another way."""


async def _differences(database: Any) -> str:
    """Return the differences between the file and this database."""
    async with await AsyncConnection.connect(database.owner_dsn) as owner:
        if owner.info.server_version // 10_000 != MAJOR:
            pytest.skip(f"the file was written by PostgreSQL {MAJOR}")
    found = await asyncio.to_thread(snapshot, database.superuser_dsn)
    committed = FILE.read_text("utf-8")
    return "\n".join(
        difflib.unified_diff(
            committed.splitlines(),
            found.splitlines(),
            FILE.name,
            "the migrated schema",
            lineterm="",
        )
    )


async def test_the_snapshot_is_what_the_migrations_make(bare_database: Any) -> None:
    await migrate(bare_database.owner_dsn, bare_database.service_dsn)
    differences = await _differences(bare_database)
    assert not differences, (
        f"review the difference, then write it down with `{COMMAND}`:\n{differences}"
    )


def test_each_function_is_defined_once_and_whole() -> None:
    texts = [file.read_text("utf-8") for file in FILE.parents[1].rglob("*.sql")]
    defined = Counter(
        name
        for text in texts
        for name in re.findall(r"CREATE (?:OR REPLACE )?FUNCTION statesvc\.(\w+)\(", text)
    )
    assert defined["claim"] == 1
    assert {name for name, times in defined.items() if times > 1} == {
        "await_sealing",
        "make_append_only",
        "next_batch_id",
    }
    assert not any(re.search(r"ALTER FUNCTION|pg_get_functiondef", text) for text in texts)


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
