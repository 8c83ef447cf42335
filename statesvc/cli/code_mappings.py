"""`statesvc carriers unmapped | map | unmap`: map a carrier's codes without a deploy.

`map` and `unmap` first show the events with the code; changes need `--yes`.
"""

import argparse
import asyncio
from collections.abc import Mapping
from typing import Final

from events.vocabulary import Reason, Status
from statesvc.api.code_words import map_commands
from statesvc.cli.api_calls import CallRefusedError, Calls, Json, work
from statesvc.cli.command_error import CommandError
from statesvc.cli.declared import Subcommands
from statesvc.cli.operation_table import add_fields, operation_named
from statesvc.cli.output import write_blocks, write_json, write_line
from statesvc.cli.service_calls import api_calls
from statesvc.http.views import Line, Sentences, draw
from statesvc.repair.dead_letters.dead_letter import SENTENCES, Obstacle

_CODE: Final = ("raw_type", "raw_code", "raw_reason", "raw_text")
_LIMIT: Final = 200


def configure_mapping(commands: Subcommands) -> None:
    unmapped = commands.add_parser(
        "unmapped", help="codes that no mapping knows yet, and codes read by their category only"
    )
    unmapped.add_argument(
        "--json", action="store_true", default=argparse.SUPPRESS, help="for scripts"
    )
    for name, summary in (
        ("map", "say what a code means, or list what was said"),
        ("unmap", "read a code as the normalizer says, again"),
    ):
        command = commands.add_parser(
            name, help=f"{summary}; shows the events with the code, and maps it with --yes"
        )
        command.add_argument("carrier", nargs="?" if name == "map" else None, help="a carrier id")
        add_fields(command, "preview_code_mapping", *_CODE)
        command.add_argument("--why", default="", help="recorded in the log; needed with --yes")
        command.add_argument(
            "--yes", action="store_true", help="make the change; without it, only show it"
        )
        command.add_argument(
            "--renormalize",
            action="store_true",
            help="with --yes: read the history of the code again at once",
        )
        command.add_argument(
            "--json", action="store_true", default=argparse.SUPPRESS, help="for scripts"
        )
        if name == "map":
            meaning = command.add_mutually_exclusive_group()
            statuses = [status.value for status in Status]
            meaning.add_argument(
                "--status",
                choices=statuses,
                metavar="STATUS",
                help=f"it is a scan, with this status: {', '.join(statuses)}",
            )
            meaning.add_argument(
                "--info",
                action="store_true",
                help="the code only informs; it never changes the status",
            )
            meaning.add_argument(
                "--list", action="store_true", help="list the mappings, of one carrier or of all"
            )
            meaning.add_argument(
                "--show",
                type=int,
                metavar="REVISION",
                help="show a mapping and what came before it",
            )
            command.add_argument(
                "--force", action="store_true", help="map the code although no event has it"
            )
            reasons = [reason.value for reason in Reason]
            command.add_argument(
                "--reason",
                choices=reasons,
                metavar="REASON",
                help=f"the reason of the scan: {', '.join(reasons)}",
            )


def run_mapping(options: argparse.Namespace) -> int:
    return asyncio.run(_run(options))


async def _run(options: argparse.Namespace) -> int:
    shows = options.what == "map" and (options.list or options.show is not None)
    if options.what != "unmapped" and not shows and options.carrier is None:
        raise CommandError("name the carrier", exit_code=2)
    lesson = None if shows or options.what == "unmapped" else _lesson(options)
    async with api_calls(options) as calls:
        if lesson is not None:
            await _teach(calls, lesson, options)
        elif shows:
            await _show(calls, options)
        else:
            await _unmapped(calls, as_json=options.json)
    return 0


def _lesson(options: argparse.Namespace) -> dict[str, Json]:
    """Return the code as it is printed, and its meaning."""
    if options.yes and not options.why.strip():
        raise CommandError("--why is missing: it stands in the log", exit_code=2)
    if options.renormalize and not options.yes:
        raise CommandError("--renormalize needs --yes", exit_code=2)
    code = {name: getattr(options, name) for name in _CODE}
    if options.what == "unmap":
        return {**code, "meaning": None}
    if all(value is None for value in code.values()):
        raise CommandError(
            "name the code: --type, --code or --text (`statesvc carriers unmapped` lists codes)",
            exit_code=2,
        )
    if options.status is None and not options.info:
        raise CommandError(
            "say what the code means: --status or --info (or --list, --show)", exit_code=2
        )
    if options.info and options.reason:
        raise CommandError("--reason belongs to a scan: name its --status", exit_code=2)
    return {
        **code,
        "meaning": {
            "kind": "info" if options.info else "scan",
            "status": options.status,
            "reason": options.reason,
        },
    }


async def _teach(calls: Calls, lesson: Mapping[str, Json], options: argparse.Namespace) -> None:
    force = options.what == "map" and options.force
    preview = await calls.call("preview_code_mapping", lesson, carrier_id=options.carrier)
    blocks = draw(operation_named("preview_code_mapping").view, preview, {**lesson, "force": force})
    refusals = [block.text for block in blocks if isinstance(block, Line) and block.is_refusal]
    if refusals:
        raise CommandError("; ".join(refusals))
    if not options.json:
        write_blocks(blocks)
    if not options.yes:
        if options.json:
            write_json(preview)
        else:
            write_line(
                "nothing was changed; --yes maps it, --yes --renormalize reads the history again too"
            )
        return
    order = {**lesson, "why": options.why, "replaces": preview["replaces"], "force": force}
    try:
        taught = await calls.call("teach_code", order, carrier_id=options.carrier)
    except CallRefusedError as error:
        latest = error.problem.get("latest_revision")
        if latest is None:
            raise
        listing = f"statesvc carriers map {options.carrier} --show {latest}"
        raise CommandError(f"{error} (`{listing}`)") from error
    document: dict[str, Json] = {"revision": taught["revision"], "preview": preview}
    blocks = draw(operation_named("teach_code").view, taught)
    if options.renormalize:
        done = await _reread(calls, options, taught["revision"], messages=preview["messages"])
        document["renormalized"] = done
        blocks += draw(operation_named("renormalize_code_mapping").view, done)
    if options.json:
        write_json(document)
        return
    write_blocks(blocks)
    if not options.renormalize:
        before = (
            "dead-letters replay --cause unknown_code" if options.what == "map" else "renormalize"
        )
        write_line(f"what was read before: statesvc {before} --carrier {options.carrier}")


async def _reread(
    calls: Calls, options: argparse.Namespace, revision: int, *, messages: int
) -> dict[str, Json]:
    ended: dict[str, Json] = {}
    given = {"carrier_id": options.carrier, "revision": revision}
    order = {"why": options.why}
    async for progress, answer in work(
        calls, "renormalize_code_mapping", order, counted="messages", total=messages, **given
    ):
        ended = {**answer, **progress.sums}
    obstacle = ended["obstacle"]
    return {
        **ended,
        "dead_letter_left": None if obstacle is None else SENTENCES[Obstacle(obstacle)],
    }


async def _show(calls: Calls, options: argparse.Namespace) -> None:
    """Show a mapping with its predecessors, those of a carrier, or all."""
    rows = await _with_texts(
        calls, "list_mapped_codes", carrier_id=options.carrier, revision=options.show, limit=_LIMIT
    )
    if options.json:
        write_json(rows["items"])
    else:
        write_blocks(draw(operation_named("list_mapped_codes").view, rows))


async def _with_texts(calls: Calls, operation_id: str, **given: Json) -> Json:
    """Call with texts in place of codes.

    Texts may be personal: readers with the scope get them, on record; all others get
    placeholders.
    """
    try:
        return await calls.call(operation_id, **given, include="personal")
    except CallRefusedError as error:
        if (
            error.problem.get("code") != "missing_scope"
            or error.problem.get("required_scope") != "pii"
        ):
            raise
    return await calls.call(operation_id, **given)


async def _unmapped(calls: Calls, *, as_json: bool) -> None:
    codes = await calls.call("list_unmapped_codes")
    if as_json:
        write_json(codes["items"])
    else:
        write_blocks(
            [
                *draw(operation_named("list_unmapped_codes").view, codes),
                *draw(Sentences(map_commands), codes),
            ]
        )
