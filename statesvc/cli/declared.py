"""Commands that make a single call, as operations declare them (`statesvc.http.faces.Command`)."""

import argparse
import asyncio
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import Final

from statesvc.cli.api_calls import Calls, Json, work
from statesvc.cli.command_error import CommandError
from statesvc.cli.command_parser import CommandParser
from statesvc.cli.operation_table import (
    NULL,
    ListedOperation,
    add_fields,
    commands_of,
    operation_named,
)
from statesvc.cli.output import write_blocks, write_json, write_line
from statesvc.cli.service_calls import api_calls
from statesvc.http.faces import Also, Command
from statesvc.http.views import Block, draw, is_refused

_PAGE: Final = 200
_PLAIN: Final = Command(name="")
_OF_A_PAGE: Final = frozenset({"items", "next_cursor"})


def configure(parser: CommandParser) -> None:
    """Add the arguments of a command, or its actions, which are declared."""
    group = parser.prog.rsplit(maxsplit=1)[-1]
    found = sorted(commands_of(group), key=lambda each: -len(_arguments(*each)))
    named: dict[str, list[tuple[ListedOperation, Command]]] = {}
    for operation, command in found:
        if command.name == group:
            _add_arguments(parser, operation, command)
            return
        named.setdefault(command.name, []).append((operation, command))
    subcommands = parser.add_subparsers(dest="action", required=True)
    for name, ((operation, command), *others) in named.items():
        summary = command.summary or operation.summary[0].lower() + operation.summary[1:]
        action = subcommands.add_parser(name.split()[-1], help=summary)
        _add_arguments(action, operation, command, is_optional=bool(others))
        for other, of in others:
            action.set_defaults(otherwise=(other.operation_id, of))


def _add_arguments(
    parser: argparse.ArgumentParser,
    operation: ListedOperation,
    command: Command,
    *,
    is_optional: bool = False,
) -> None:
    arguments = _arguments(operation, command)
    add_fields(
        parser,
        operation.operation_id,
        *arguments,
        *_options(operation, command),
        arguments=arguments,
        optional=(
            *(arguments if is_optional else ()),
            *(("why",) if command.preview else ()),
        ),
        required=command.required,
    )
    if operation.takes_why:
        parser.add_argument("--why", default="", help="recorded in the log")
    if command.preview:
        parser.add_argument(
            "--yes", action="store_true", help="do it; without it, only show what it would do"
        )
    if command.preset:
        parser.add_argument("--all", action="store_true", help="all of them")
    parser.add_argument(
        "--json", action="store_true", default=argparse.SUPPRESS, help="for scripts"
    )
    parser.set_defaults(declared=(operation.operation_id, command), json=False)


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


def run(options: argparse.Namespace) -> int:
    """Make the call, and show its answer."""
    return asyncio.run(_run(options))


async def _run(options: argparse.Namespace) -> int:
    operation_id, command = options.declared
    operation = operation_named(operation_id)
    arguments = _arguments(operation, command)
    if hasattr(options, "otherwise") and all(getattr(options, each) is None for each in arguments):
        operation_id, command = options.otherwise
        operation = operation_named(operation_id)
    taken = [*_arguments(operation, command), *_options(operation, command)]
    why = options.why if operation.takes_why else ""
    if "why" in taken:
        _require_why(options, operation, command)
    preset = {} if not command.preset or options.all else command.preset
    async with api_calls(options) as calls:
        stated = _stated(options, operation, taken) | {**preset, **command.fixed}
        _require_change(operation, command, stated)
        if command.preview:
            previewed = operation_named(command.preview)
            answer = await _answer(calls, previewed, stated)
            would = draw(previewed.view, answer, _nested(stated))
            code = 1 if is_refused(would) else 0
            if code or not options.yes:
                _write(answer, would, stated, as_json=options.json and not code)
                if not options.json and not code:
                    write_line("nothing was changed; --yes does it")
                return code
        cursor = operation.fields.get("cursor")
        paged = {"cursor", "limit"} & {*taken, *command.fixed}
        is_whole = cursor is not None and cursor.place == "query" and not paged
        answer = await _answer(
            calls, operation, {**command.defaults, **stated}, why=why, is_whole=is_whole
        )
        blocks = draw(command.view or operation.view, answer, _nested(stated))
        for also in command.also:
            blocks += await _add(calls, also, answer, stated)
    return _write(answer, blocks, stated, as_json=options.json, command=command)


def _require_change(
    operation: ListedOperation, command: Command, stated: Mapping[str, Json]
) -> None:
    """Refuse a change that states no member: it would only enter the log."""
    method = operation.where.partition(" ")[0]
    unchanging = {*_arguments(operation, command), "why"}
    if method in {"PUT", "PATCH"} and not stated.keys() - unchanging:
        flags = (
            operation.fields[name.partition(".")[0]].option
            for name in _options(operation, command)
            if name not in unchanging
        )
        raise CommandError(
            f"there is no change: give one of {', '.join(dict.fromkeys(flags))}", exit_code=2
        )


def _require_why(options: argparse.Namespace, operation: ListedOperation, command: Command) -> None:
    is_required = operation.fields["why"].required or "why" in command.required
    if not is_required or (command.preview and not options.yes):
        return
    if options.why is None:
        raise CommandError("--why is missing: it stands in the log", exit_code=2)
    if not options.why.strip():
        raise CommandError("--why must say why", exit_code=2)


def _stated(
    options: argparse.Namespace, operation: ListedOperation, taken: Iterable[str]
) -> dict[str, Json]:
    """Return the values of the options; None: null."""
    stated = {name: getattr(options, name) for name in taken}
    for field in (operation.fields[name] for name, value in stated.items() if value is not None):
        if field.removed:
            sys.stderr.write(f"statesvc: {field.option} has no effect: {field.removed}\n")
            stated[field.name] = None
    return {
        name: None if value is NULL else value
        for name, value in stated.items()
        if value not in (None, [])
    }


def _nested(stated: Mapping[str, Json]) -> dict[str, Json]:
    """Return the fields with members of members inside them."""
    nested: dict[str, Json] = {}
    for name, value in stated.items():
        *outer, last = name.split(".")
        place = nested
        for part in outer:
            place[part] = place.get(part) or {}
            place = place[part]
        place[last] = value
    return nested


async def _add(
    calls: Calls, also: Also, answer: dict[str, Json], stated: Mapping[str, Json]
) -> list[Block]:
    """Make a further call, add its list to the answer, and return how it looks."""
    operation = operation_named(also.operation)
    given = {name: value for name, value in stated.items() if name in operation.fields}
    for name in also.given:
        if answer[name] is None:
            answer[also.member] = []
            return []
        given[name] = answer[name]
    page = await calls.call(also.operation, **given, limit=also.limit)
    answer |= {name: value for name, value in page.items() if name not in _OF_A_PAGE}
    answer[also.member] = page["items"]
    return draw(operation.view, page)


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
    fields = operation.fields
    said = {name: value for name, value in stated.items() if name.partition(".")[0] in fields}
    places = {name: fields[name.partition(".")[0]].place for name in said}
    body = _nested({name: value for name, value in said.items() if places[name] == "body"})
    given = {name: value for name, value in said.items() if places[name] != "body"}
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
    blocks: Sequence[Block],
    stated: Mapping[str, Json],
    *,
    as_json: bool,
    command: Command = _PLAIN,
) -> int:
    """Write the answer; return 1 if it reports a part as not done."""
    is_failure = is_refused(blocks) and not stated.get("dry_run")
    listed = answer["items"] if isinstance(answer, dict) and "items" in answer else None
    if as_json:
        is_page = listed is None or (answer.keys() - _OF_A_PAGE and not command.is_rows)
        write_json(_renamed(answer if is_page else listed, command.renamed))
    else:
        write_blocks(blocks, is_failure=is_failure)
    if listed is not None and answer.get("next_cursor"):
        # behind a document for scripts nothing else may stand
        (sys.stderr.write if as_json else write_line)(
            f"... there are more: --cursor {answer['next_cursor']}"
        )
    return 1 if is_failure else 0
