"""Commands that make one call each, as their operations declare them (`statesvc.http.faces.Command`)."""

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from statesvc.cli.api_calls import Calls, Json, work
from statesvc.cli.command_error import CommandError
from statesvc.cli.operation_table import ListedOperation, add_fields, commands_of, operation_named
from statesvc.cli.output import cell, write_json, write_line, write_table
from statesvc.cli.service_calls import api_calls
from statesvc.http.faces import Command


class Subcommands(Protocol):
    """The special action of argparse that takes subcommands."""

    def add_parser(self, name: str, **arguments: Any) -> argparse.ArgumentParser:  # noqa: ANN401 - argparse's own
        ...


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of a group that is declared as a whole."""
    group = parser.prog.rsplit(maxsplit=1)[-1]
    add_declared(parser.add_subparsers(dest="action", required=True), group)


def add_declared(subcommands: Subcommands, group: str) -> None:
    """Add the declared ones to a group that has others, too."""
    for operation, command in commands_of(group):
        summary = command.summary or operation.summary[0].lower() + operation.summary[1:]
        parser = subcommands.add_parser(command.name.split()[-1], help=summary)
        arguments = _arguments(operation, command)
        add_fields(
            parser,
            operation.operation_id,
            *arguments,
            *_options(operation, command),
            arguments=arguments,
        )
        if operation.takes_why:
            parser.add_argument("--why", default="", help="recorded in the log")
        if command.preview:
            parser.add_argument(
                "--yes", action="store_true", help="do it; without it, only show what it would do"
            )
        parser.add_argument("--json", action="store_true", help="for scripts")
        parser.set_defaults(declared=(operation.operation_id, command))


def _arguments(operation: ListedOperation, command: Command) -> tuple[str, ...]:
    if command.arguments is not None:
        return tuple(command.arguments)
    return tuple(name for name, field in operation.fields.items() if field.place == "path")


def _options(operation: ListedOperation, command: Command) -> list[str]:
    plain = (
        [name for name, field in operation.fields.items() if field.type != "object"]
        if command.fields is None
        else command.fields
    )
    return [
        name
        for name in plain
        if name not in command.fixed and name not in _arguments(operation, command)
    ]


CompleteIds = Callable[[Calls, argparse.Namespace], Awaitable[None]]
"""Completes, in the options, the ids of which only the first characters were given."""


def run(options: argparse.Namespace, *, complete_ids: CompleteIds | None = None) -> int:
    """Make the call, and show its answer."""
    return asyncio.run(_run(options, complete_ids))


async def _run(options: argparse.Namespace, complete_ids: CompleteIds | None) -> int:
    operation_id, command = options.declared
    operation = operation_named(operation_id)
    taken = [*_arguments(operation, command), *_options(operation, command)]
    why = options.why if operation.takes_why else ""
    if (
        "why" in taken
        and operation.fields["why"].required
        and options.why is not None
        and not options.why.strip()
    ):
        raise CommandError("--why must say why", exit_code=2)
    async with api_calls(options) as calls:
        if complete_ids is not None:
            await complete_ids(calls, options)
        stated = {name: getattr(options, name) for name in taken} | dict(command.fixed)
        if command.preview and not options.yes:
            _write(
                await _answer(calls, operation_named(command.preview), stated),
                command,
                stated,
                as_json=options.json,
            )
            if not options.json:
                write_line("nothing was changed; --yes does it")
            return 0
        answer = await _answer(calls, operation, stated, why=why)
    _write(answer, command, stated, as_json=options.json)
    return 0


async def _answer(
    calls: Calls, operation: ListedOperation, stated: Mapping[str, Json], *, why: str = ""
) -> Json:
    """Make the call; what was not stated is not sent."""
    said = {
        name: value
        for name, value in stated.items()
        if value is not None and name in operation.fields
    }
    body = {name: value for name, value in said.items() if operation.fields[name].place == "body"}
    given = {name: value for name, value in said.items() if operation.fields[name].place != "body"}
    if operation.parts is None:
        return await calls.call(operation.operation_id, body, why=why, **given)
    answer: Json = None
    async for progress, part in work(
        calls, operation.operation_id, body, counted=operation.parts.summed[0], **given
    ):
        answer = {**part, **progress.sums}
    return answer


def _write(answer: Json, command: Command, stated: Mapping[str, Json], *, as_json: bool) -> None:
    listed = answer["items"] if isinstance(answer, dict) and "items" in answer else None
    if as_json:
        write_json(answer if listed is None else listed)
    elif command.done:
        members = answer if isinstance(answer, dict) else {}
        write_line(
            command.done.format_map(
                {**members, **{name: value for name, value in stated.items() if value is not None}}
            )
        )
    elif listed is None:
        write_members(
            {name: value for name, value in (answer or {}).items() if value not in (None, "", [])}
        )
    elif listed:
        columns = command.columns or tuple(listed[0])
        write_table(
            [_words(name).upper() for name in columns],
            [[cell(row.get(name)) for name in columns] for row in listed],
        )
    else:
        write_line(command.nothing)
    if listed is not None and answer.get("next_cursor"):
        # behind a document for scripts nothing else may stand
        (sys.stderr.write if as_json else write_line)(
            f"... there are more: --cursor {answer['next_cursor']}"
        )


def write_members(members: Mapping[str, Json]) -> None:
    """Write one member a line, and each list of objects as a table of its own below."""
    lists = {
        name: value
        for name, value in members.items()
        if isinstance(value, list) and isinstance(value[0], dict)
    }
    write_table(
        ("FIELD", "VALUE"),
        [(_words(name), cell(value)) for name, value in members.items() if name not in lists],
    )
    for name, rows in lists.items():
        write_line(f"\n{_words(name)}:")
        columns = [
            column for column in rows[0] if any(row.get(column) not in (None, "") for row in rows)
        ]
        write_table(
            [_words(column).upper() for column in columns],
            [[cell(row.get(column)) for column in columns] for row in rows],
        )


def _words(name: str) -> str:
    return name.replace("_", " ")
