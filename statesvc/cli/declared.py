"""Commands that make a single call, as operations declare them (`statesvc.http.faces.Command`)."""

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Any, Final, Protocol

from statesvc.cli.api_calls import Calls, Json, work
from statesvc.cli.command_error import CommandError
from statesvc.cli.operation_table import ListedOperation, add_fields, commands_of, operation_named
from statesvc.cli.output import write_blocks, write_json, write_line
from statesvc.cli.service_calls import api_calls
from statesvc.http.faces import Command
from statesvc.http.views import Views, draw, is_refused

_PAGE: Final = 200
_NONE: Final[Mapping[str, str]] = {}
_OF_A_PAGE: Final = frozenset({"items", "next_cursor"})


class Subcommands(Protocol):
    """The special action of argparse that takes subcommands."""

    def add_parser(self, name: str, **arguments: Any) -> argparse.ArgumentParser:  # noqa: ANN401 - argparse's own
        ...


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of a group that is declared as a whole."""
    group = parser.prog.rsplit(maxsplit=1)[-1]
    for operation, command in commands_of(group):
        if command.name == group:
            _add_arguments(parser, operation, command)
            return
    add_declared(parser.add_subparsers(dest="action", required=True), group)


def add_declared(subcommands: Subcommands, group: str) -> None:
    """Add the declared ones to a group that has others, too."""
    for operation, command in commands_of(group):
        summary = command.summary or operation.summary[0].lower() + operation.summary[1:]
        parser = subcommands.add_parser(command.name.split()[-1], help=summary)
        _add_arguments(parser, operation, command)


def _add_arguments(
    parser: argparse.ArgumentParser, operation: ListedOperation, command: Command
) -> None:
    arguments = _arguments(operation, command)
    options = _options(operation, command)
    add_fields(parser, operation.operation_id, *arguments, *options, arguments=arguments)
    if operation.takes_why:
        parser.add_argument("--why", default="", help="recorded in the log")
    if command.preview:
        parser.add_argument(
            "--yes", action="store_true", help="do it; without it, only show what it would do"
        )
    if command.preset:
        parser.add_argument("--all", action="store_true", help="all of them")
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
        if name not in {*command.fixed, *command.preset, *_arguments(operation, command)}
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
    preset = {} if not command.preset or options.all else command.preset
    async with api_calls(options) as calls:
        if complete_ids is not None:
            await complete_ids(calls, options)
        stated = {name: getattr(options, name) for name in taken} | {**preset, **command.fixed}
        if command.preview and not options.yes:
            previewed = operation_named(command.preview)
            answer = await _answer(calls, previewed, stated)
            code = _write(answer, previewed.view, stated, as_json=options.json)
            if not options.json and not code:
                write_line("nothing was changed; --yes does it")
            return code
        cursor = operation.fields.get("cursor")
        is_whole = cursor is not None and cursor.place == "query" and "cursor" not in taken
        answer = await _answer(calls, operation, stated, why=why, is_whole=is_whole)
    return _write(
        answer,
        command.view or operation.view,
        stated,
        as_json=options.json,
        renamed=command.renamed,
    )


async def _answer(
    calls: Calls,
    operation: ListedOperation,
    stated: Mapping[str, Json],
    *,
    why: str = "",
    is_whole: bool = False,
) -> Json:
    """Make the call with the stated fields only.

    Work in parts is done to its end, unless `limit` bounds it.
    """
    said = {
        name: value
        for name, value in stated.items()
        if value not in (None, []) and name in operation.fields
    }
    for field in (operation.fields[name] for name in [*said] if operation.fields[name].removed):
        sys.stderr.write(f"statesvc: {field.option} has no effect: {field.removed}\n")
        del said[field.name]
    body = {name: value for name, value in said.items() if operation.fields[name].place == "body"}
    given = {name: value for name, value in said.items() if operation.fields[name].place != "body"}
    if is_whole:
        return await whole(calls, operation, given)
    if operation.parts is None:
        return await calls.call(operation.operation_id, body, why=why, **given)
    answer: Json = None
    counted, first = operation.parts.summed[0], dict[str, Json]()
    async with aclosing(
        work(calls, operation.operation_id, body, counted=counted, why=why, **given)
    ) as parts:
        async for progress, part in parts:
            first = first or {name: part[name] for name in operation.parts.first}
            answer = {**part, **first, **progress.members}
            if "limit" in body:
                break
    return answer


async def whole(calls: Calls, operation: ListedOperation, given: Mapping[str, Json]) -> Json:
    """Return all pages of a list as a single page."""
    answer = page = await calls.call(operation.operation_id, **given, limit=_PAGE)
    while page["next_cursor"] is not None:
        page = await calls.call(
            operation.operation_id, **given, limit=_PAGE, cursor=page["next_cursor"]
        )
        answer["items"] += page["items"]
    return {**answer, "next_cursor": None}


def _renamed(answer: Json, names: Mapping[str, str]) -> Json:
    """Return the answer, or the rows of a list, with other names for members."""
    match answer:
        case dict():
            return {
                names.get(name, name): _renamed(value, names) if name == "items" else value
                for name, value in answer.items()
            }
        case list():
            return [_renamed(row, names) for row in answer]
        case _:
            return answer


def _write(
    answer: Json,
    view: Views,
    stated: Mapping[str, Json],
    *,
    as_json: bool,
    renamed: Mapping[str, str] = _NONE,
) -> int:
    """Write the answer; return 1 if it reports a part as not done."""
    blocks = draw(view, answer, stated)
    is_failure = is_refused(blocks) and not stated.get("dry_run")
    listed = answer["items"] if isinstance(answer, dict) and "items" in answer else None
    if as_json:
        printed = answer if listed is None or answer.keys() - _OF_A_PAGE else listed
        write_json(_renamed(printed, renamed))
    else:
        write_blocks(blocks, is_failure=is_failure)
    if listed is not None and answer.get("next_cursor"):
        # behind a document for scripts nothing else may stand
        (sys.stderr.write if as_json else write_line)(
            f"... there are more: --cursor {answer['next_cursor']}"
        )
    return 1 if is_failure else 0
