"""`python -m tests.migrations.snapshot`: writes `migrations/generated/schema.sql`, what the
migrations make, for reviewers to read.

It is pg_dump's account of a migrated database, table by table: each with its constraints, indexes
and triggers. Left out are the partitions, which depend on the day; owners and privileges, which are
in `privileges.sql`; how finely columns are sampled, which has a test of its own; and the text of
functions, which has its place in `functions/`.
"""

import asyncio
import os
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from textwrap import fill
from typing import Final

from statesvc.database.migrator import migrate
from statesvc.database.postgres_programs import MAJOR, programs
from tests.world import postgres

FILE: Final = Path(__file__).parents[2] / "migrations" / "generated" / "schema.sql"
COMMAND: Final = "python -m tests.migrations.snapshot"
_HEAD: Final = f"""\
-- What the migrations make. No migration: nothing applies this file, `{COMMAND}` writes it, and a test compares it.
"""
_PARTITIONS: Final = "statesvc.*_[0-9]{6,8}"
_OPTIONS: Final = (
    "--schema-only",
    "--no-owner",
    "--no-privileges",
    "--schema=statesvc",
    f"--exclude-table={_PARTITIONS}",
)
_ENTRY: Final = re.compile(r"^-- Name: .*?; Type: (?P<kind>.*?); Schema: .*$", re.MULTILINE)
_NOISE: Final = re.compile(
    r"^(?:--.*|SET .*|\\.*|ALTER TABLE ONLY \S+ ALTER COLUMN \S+ SET STATISTICS \d+;|)\n",
    re.MULTILINE,
)
_TABLE: Final = re.compile(r"\b(?:TABLE|ON)(?: ONLY)? statesvc\.(\w+)")
_SIGNATURE: Final = re.compile(r"CREATE FUNCTION statesvc\.(.+?)\n    LANGUAGE", re.DOTALL)


def snapshot(superuser_dsn: str) -> str:
    """Take a snapshot of this database."""
    command: list[str | Path] = [programs(MAJOR) / "pg_dump", *_OPTIONS, superuser_dsn]
    dump = subprocess.run(
        command,
        check=True,
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, "PGTZ": "UTC"},
    ).stdout
    functions: list[str] = []
    others: list[str] = []
    tables: dict[str, list[str]] = defaultdict(list)
    for kind, text in _entries(dump):
        if kind == "FUNCTION":
            functions.extend(_SIGNATURE.findall(text))
        elif (table := _TABLE.search(text)) is not None:
            tables[table[1]].append(text)
        else:
            others.append(text)
    signatures = "".join(
        fill(signature, 140, initial_indent="--   ", subsequent_indent="--       ") + "\n"
        for signature in sorted(functions)
    )
    blocks = ("".join(tables[name]) for name in sorted(tables))
    return "\n".join([_HEAD, f"-- Functions:\n{signatures}", "".join(others), *blocks])


def _entries(dump: str) -> Iterator[tuple[str, str]]:
    starts = list(_ENTRY.finditer(dump))
    ends = [entry.start() for entry in starts[1:]] + [len(dump)]
    for entry, end in zip(starts, ends, strict=True):
        yield entry["kind"], _NOISE.sub("", dump[entry.end() + 1 : end])


def _main() -> None:
    postgres.claim_folder()
    try:
        server = postgres.running_server()
        empty = server.on(postgres.create_database(server, "template1"))
        asyncio.run(migrate(empty.owner_dsn, empty.service_dsn))
        FILE.write_text(snapshot(empty.superuser_dsn), "utf-8")
    finally:
        postgres.close_connections()
        postgres.release_folder()


if __name__ == "__main__":
    _main()
