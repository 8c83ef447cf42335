"""`statesvc carriers unmapped | map | unmap`: what a carrier's codes mean, taught without a deploy.

`map` and `unmap` show first which events have the code; nothing is changed without `--yes`.
"""

import argparse
import asyncio
import shlex
from collections.abc import Mapping
from typing import Any, Final

from events.vocabulary import Reason, Status
from statesvc.cli.api_calls import CallRefusedError, Calls, Json, work
from statesvc.cli.command_error import CommandError
from statesvc.cli.declared import Subcommands
from statesvc.cli.operation_table import add_fields
from statesvc.cli.output import time_of, write_json, write_line, write_table
from statesvc.cli.service_calls import api_calls
from statesvc.repair.dead_letters.dead_letter import SENTENCES, Obstacle

_TEXT: Final = "text"
"""Stands in lists where the carrier prints a text in place of a code (`events.clear_part.TEXT`)."""
_CODE: Final = ("raw_type", "raw_code", "raw_reason", "raw_text")
_EXAMPLES_SHOWN: Final = 2
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
    """List, show, preview or teach."""
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
    """Return the code as it is printed, and what it is to mean."""
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
    preview = await calls.call("preview_code_mapping", lesson, carrier_id=options.carrier)
    meaning = lesson["meaning"]
    if meaning is None and preview["in_effect"] is None:
        raise CommandError("no mapping of the code is in effect: the normalizer reads it")
    if not options.json:
        _write_preview(preview, meaning)
    force = options.what == "map" and options.force
    if meaning is not None and not preview["events"] and not force:
        raise CommandError(
            "no event has this code, so mapping it would change nothing: a code is compared as it is written, it is no pattern; "
            "--force maps it all the same"
        )
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
        revision = (await calls.call("teach_code", order, carrier_id=options.carrier))["revision"]
    except CallRefusedError as error:
        latest = error.problem.get("latest_revision")
        raise (
            error
            if latest is None
            else CommandError(
                f"{error} (`statesvc carriers map {options.carrier} --show {latest}`)"
            )
        ) from error
    document: dict[str, Json] = {"revision": revision, "preview": preview}
    if options.renormalize:
        document["renormalized"] = await _reread(
            calls, options, revision, messages=preview["messages"]
        )
    if options.json:
        write_json(document)
    else:
        _write_applied(document, options)


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


def _write_preview(preview: Mapping[str, Any], meaning: Mapping[str, Any] | None) -> None:
    now = (
        "the normalizer reads it"
        if preview["in_effect"] is None
        else f"read as {_words(preview['in_effect'])}"
    )
    then = "as the normalizer says" if meaning is None else f"as {_words(meaning)}"
    least = "at least " if preview["counts_capped"] else ""
    write_line(f"now {now}; would be read {then}")
    write_line(
        f"{least}{preview['events']} events of {preview['shipments']} shipments in {preview['messages']} messages have the code"
    )
    if preview["samples"]:
        write_table(
            ("NEWEST", "HAPPENED", "CODE"),
            [
                (sample["tracking_number"], time_of(sample["occurred_at"]), _code(sample))
                for sample in preview["samples"]
            ],
        )


def _write_applied(document: Mapping[str, Any], options: argparse.Namespace) -> None:
    write_line(f"revision {document['revision']}; in effect at the next claim")
    done = document.get("renormalized")
    if done is None:
        before = (
            "dead-letters replay --cause unknown_code" if options.what == "map" else "renormalize"
        )
        write_line(f"what was read before: statesvc {before} --carrier {options.carrier}")
        return
    write_line(
        f"{done['messages']} messages read again: {done['corrected']} events corrected, {done['transitions']} changes of status, "
        f"{done['notifications']} notifications"
    )
    if done["dead_letter_left"] is not None:
        write_line(f"dead letter {done['dead_letter_id']} stays open: {done['dead_letter_left']}")


async def _show(calls: Calls, options: argparse.Namespace) -> None:
    """Show one with what came before it, those of a carrier, or all."""
    rows = await _with_texts(
        calls, "list_mapped_codes", carrier_id=options.carrier, revision=options.show, limit=_LIMIT
    )
    _write_mappings(rows["items"], as_json=options.json)


async def _with_texts(calls: Calls, operation_id: str, **given: Json) -> Json:
    """Call with texts in place of codes, which may be personal: on record, for who may read them; for all others with their stand-ins."""
    try:
        return await calls.call(operation_id, **given, include="personal")
    except CallRefusedError as error:
        if (
            error.problem.get("code") != "missing_scope"
            or error.problem.get("required_scope") != "pii"
        ):
            raise
    return await calls.call(operation_id, **given)


def _write_mappings(rows: list[Mapping[str, Any]], *, as_json: bool) -> None:
    if as_json:
        write_json(rows)
    elif rows:
        cells = [
            (
                row["revision"],
                row["carrier_id"],
                _code(row),
                _words(row["meaning"]) if row["meaning"] else "as the normalizer says",
                _words(row["shipped"]) if row["shipped"] else None,
                "redundant" if row["redundant"] else None,
                time_of(row["added_at"]),
                row["added_by"],
                row["why"],
            )
            for row in rows
        ]
        write_table(
            ("REVISION", "CARRIER", "CODE", "READ AS", "TABLE SAYS", "", "ADDED", "BY", "WHY"),
            cells,
        )
    else:
        write_line("no code is mapped")


def _code(row: Mapping[str, Any]) -> str:
    texts = row.get("texts") or {}
    parts = (
        ("", row["raw_type"]),
        ("", row["raw_code"]),
        ("reason ", row["raw_reason"]),
        ("text ", row.get("raw_text")),
    )
    return "/".join(f"{label}{texts.get(part, part)}" for label, part in parts if part is not None)


def _words(meaning: Mapping[str, Any] | None) -> str:
    if meaning is None:
        return "the normalizer says"
    return " ".join(
        word for word in (meaning["status"] or meaning["kind"], meaning["reason"]) if word
    )


def _command(code: Mapping[str, Any]) -> str:
    """Return the command that maps it. Of a text only its place is listed: a history, or a sample of the console, has the text itself."""
    parts = (("--type", code["raw_type"]), ("--code", code["raw_code"]))
    named = [
        f"{option} {'TEXT' if part == _TEXT else shlex.quote(part)}"
        for option, part in parts
        if part is not None
    ]
    meant, proposed = ["--status STATUS"], code["proposed"]
    if proposed is not None:
        meant = [
            f"--status {proposed['status']}",
            *((f"--reason {proposed['reason']}",) if proposed["reason"] else ()),
        ]
    return " ".join(
        ["statesvc carriers map", code["carrier_id"], *(named or ["--text TEXT"]), *meant]
    )


async def _unmapped(calls: Calls, *, as_json: bool) -> None:
    codes = (await calls.call("list_unmapped_codes"))["items"]
    if as_json:
        write_json(codes)
    elif codes:
        rows = [
            (
                code["carrier_id"],
                code["carrier_code"] or "(no code)",
                code["read"].replace("_", " "),
                code["events"],
                code["shipments"],
                time_of(code["since"]),
                code["dead_letter_id"],
                f"{_words(code['mapped'])}: replay its dead letter" if code["mapped"] else None,
                f"{code['proposed']['status']}: {code['proposed']['why']}"
                if code["proposed"]
                else None,
                " ".join(code["message_ids"][:_EXAMPLES_SHOWN]),
            )
            for code in codes
        ]
        write_table(
            (
                "CARRIER",
                "CODE",
                "READ",
                "EVENTS",
                "SHIPMENTS",
                "SINCE",
                "DEAD LETTER",
                "MAPPED",
                "PROPOSED",
                "EXAMPLES",
            ),
            rows,
        )
        write_line("\nto say what one means (first it shows what would change):")
        for code in codes:
            if code["mapped"] is None:
                write_line(f"  {_command(code)}")
    else:
        write_line("every code that was pushed is mapped")
