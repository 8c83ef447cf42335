"""Every command in a folder without data: only `up`, `init` and `migrate` make anything.

A new command is covered when it is added.
"""

# ruff: noqa: SLF001 - argparse has no public way to walk a parser

import argparse
import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

import pytest

from statesvc.cli import build_parser, main
from statesvc.cli.command_table import actions, commands
from statesvc.database.dsns import database_name
from statesvc.settings.service_settings import DatabaseSettings

MAKE_DATA = frozenset({"up", "init", "migrate"})
NEED_NO_DATABASE = frozenset({"completion", "mcp", "normalize", "runbook", "shovel"})
"""They work without one, or ask first for a file, or a broker, that is not there."""
OF_CARRIERS: Final = frozenset({("carriers", "list"), ("carriers", "draft")})
"""Neither do these."""
VALUES = MappingProxyType(
    {
        "carrier": "ups",
        "tracking": "1Z999AA10123456784",
        "out": "evidence.json",
        "scopes": "read",
        "percent": "0",
        "since": "2026-01-01T00:00:00Z",
        "numbers": "1Z999AA10123456784",
        "limits": "stalled=24",
    }
)
UUID = "6f9619ff-8b86-4d01-b42d-00cf4fc964ff"
FURTHER: Final[Mapping[tuple[str, ...], tuple[str, ...]]] = MappingProxyType(
    {
        ("carriers", "map"): (
            "--code",
            "X1",
            "--status",
            "in_transit",
            "--yes",
            "--why",
            "known",
        ),
        ("carriers", "quota"): ("--weight", "1"),
        ("carriers", "unmap"): ("--code", "X1", "--yes", "--why", "wrong"),
        ("dead-letters", "discard"): ("--carrier", "ups"),
        ("dead-letters", "replay"): ("--carrier", "ups"),
        ("archive", "log"): ("--hot-months", "1"),
        ("rollout", "set"): ("--candidate", "2"),
    }
)


def leaves(
    parser: argparse.ArgumentParser, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], argparse.ArgumentParser]]:
    inner = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if path and (not inner or not inner[0].required):
        yield path, parser
    for action in inner:
        for name, subparser in action.choices.items():
            yield from leaves(subparser, (*path, name))


def arguments_of(path: tuple[str, ...], parser: argparse.ArgumentParser) -> list[str]:
    """Return the fewest arguments that the parser takes, and what the command wants beyond."""
    given = [*path]
    for action in parser._actions:
        if (
            not action.required
            or action.nargs == "*"
            or isinstance(action, argparse._SubParsersAction)
        ):
            continue
        value = str(next(iter(action.choices))) if action.choices else VALUES.get(action.dest, "1")
        for candidate in (value, UUID, "00000001"):
            try:
                parser._get_values(action, [candidate])
            except argparse.ArgumentError:
                continue
            given += [*action.option_strings[-1:], candidate]
            break
    for group in parser._mutually_exclusive_groups:
        if group.required:
            action = group._group_actions[0]
            given += [*action.option_strings[-1:], VALUES.get(action.dest, "1")]
    return [*given, *FURTHER.get(path, ())]


def command_lines() -> list[list[str]]:
    return [
        arguments_of(path, parser)
        for path, parser in leaves(build_parser({*commands(), *actions()})[0])
        if path[0] not in MAKE_DATA
    ]


def test_a_command_without_data_says_so_and_writes_nothing(
    empty: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    for arguments in command_lines():
        ended = main(arguments)
        printed = capsys.readouterr()
        said = (
            f"no statesvc data in {empty / '.statesvc'}; set DATABASE_URL or STATESVC_DATA_DIR, or give"
            " --env-file"
        )
        assert list(empty.iterdir()) == [], arguments
        if arguments[0] in NEED_NO_DATABASE or tuple(arguments[:2]) in OF_CARRIERS:
            continue
        if arguments[0] == "doctor":
            assert said in printed.out, arguments
            assert ended == 1, arguments
        else:
            assert printed.err == f"statesvc: {said}\n", printed.out
            assert printed.out == "", arguments
            assert ended == 2, arguments


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("postgresql://someone:hush@db.example:6432/parcels", "db.example:6432/parcels"),
        ("host=one,two port=5432 dbname=parcels password=hush", "one,two:5432/parcels"),
        ("postgresql://someone:hush@/parcels?host=/run/postgresql", "/run/postgresql:5432/parcels"),
        ("service=parcels password=hush", "service parcels"),
    ],
)
def test_a_database_is_named_without_its_password(
    url: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", url)
    monkeypatch.delenv("PGPORT", raising=False)
    assert database_name(DatabaseSettings()) == name


def test_an_embedded_database_is_named_by_its_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.setenv("STATESVC_DATA_DIR", str(tmp_path))
    assert database_name(DatabaseSettings()) == str(tmp_path)
