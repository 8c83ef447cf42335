"""Every command of the runbook is one that there is: the service's own are parsed as they stand,
statements of SQL are planned.
"""

import io
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from psycopg import AsyncConnection

from events.errors import Cause
from statesvc.cli import main

RUNBOOK: Final = Path(__file__).parents[2] / "docs" / "runbook"
BLOCK: Final = re.compile(r"^ *```sh\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
INLINE: Final = re.compile(r"`(statesvc [a-z][^`]*|SELECT [^`]*|ROLLBACK [^`]*|SHOW [^`]*)`")
PSQL: Final = re.compile(r'^(?:psql "\$SUPERUSER_URL"|statesvc psql(?: --owner)?) -c "(.*)"$')


def _commands() -> Iterator[tuple[str, str]]:
    for page in sorted(RUNBOOK.glob("*.md")):
        text = page.read_text("utf-8")
        for block in BLOCK.findall(text):
            yield from ((page.stem, line.strip()) for line in block.splitlines() if line.strip())
        yield from ((page.stem, found) for found in INLINE.findall(BLOCK.sub("", text)))


def _of_the_service() -> list[tuple[str, str]]:
    return [(page, command) for page, command in _commands() if command.startswith("statesvc ")]


def _statements() -> list[tuple[str, str]]:
    found = [
        (page, match[1])
        for page, command in _commands()
        if (match := PSQL.match(command)) and match[1].startswith("SELECT ")
    ]
    return found + [
        (page, command) for page, command in _commands() if command.startswith("SELECT ")
    ]


def _filled(command: str) -> list[str]:
    words = shlex.split(command, comments=True)[1:]
    values = {
        "ID": "a0000000" if "subscriptions" in words else "1",
        "FILE": __file__,
        "T": "2026-11-23T02:00:00Z",
    }
    return [values.get(word, word) for word in words]


def test_there_is_nothing_else_in_the_blocks() -> None:
    strange = [
        (page, line)
        for page, line in _commands()
        if not re.match(r"statesvc |psql |SELECT |ROLLBACK |SHOW ", line)
    ]
    assert strange == []


def test_a_command_takes_what_the_page_gives_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Stopped at the database: there is none at this address, so the command says so
    instead of `wrong use`.
    """
    monkeypatch.setenv("DATABASE_URL", "postgresql://nobody@127.0.0.1:1/none")
    monkeypatch.setenv("STATESVC_OWNER_URL", "postgresql://nobody@127.0.0.1:1/none")
    monkeypatch.setenv("STATESVC_ARCHIVE_DIR", str(tmp_path))
    for page, command in _of_the_service():
        monkeypatch.setattr("sys.stdin", io.StringIO())
        words = _filled(command)
        if words[0] in {"up", "ingress", "api", "worker", "notifier", "sealer"}:
            words = [*words, "--help"]
        try:
            ended = main(words)
        except SystemExit as stopped:
            ended = int(stopped.code or 0)
        assert ended != 2, f"{page}: {capsys.readouterr().err}"


async def test_a_statement_can_be_planned(database: Any) -> None:
    for page, statement in _statements():
        text = statement.replace("PID", "1").replace("NAME", "x")
        async with await AsyncConnection.connect(database.service_dsn) as connection:
            assert await (await connection.execute(f"EXPLAIN {text}".encode())).fetchone(), page


def test_the_page_of_dead_letters_says_what_to_do_for_each_cause() -> None:
    page = (RUNBOOK / "DeadLettersGrow.md").read_text("utf-8")
    assert [cause.value for cause in Cause if f"`{cause.value}`" not in page] == []
