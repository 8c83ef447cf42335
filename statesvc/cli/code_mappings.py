"""`statesvc carriers unmapped | map | unmap`: what a carrier's codes mean, taught without a deploy.

`map` and `unmap` show first what history would become; nothing is changed without `--yes`.
"""

import argparse
import asyncio
import os
import shlex
import socket
from typing import Any, Final

from psycopg import AsyncConnection

from events.carriers import CARRIERS
from events.clear_part import TEXT
from events.crypto.keyring import Keyring
from events.parsing.meanings import Meaning
from events.vocabulary import Kind, Reason, Status
from statesvc.cli.arguments import carrier_named
from statesvc.cli.command_error import CommandError
from statesvc.cli.dead_letter_actions import Subcommands
from statesvc.cli.output import write_json, write_line, write_table
from statesvc.cli.session import actor, service_connection
from statesvc.database.keyring_store import MasterKeyError, load_keyring
from statesvc.database.kms.kms import KmsError
from statesvc.database.pool import SingleConnection
from statesvc.database.wakeups.waker import notify
from statesvc.inbox.rollouts.code_mapping import (
    MappingChangedError,
    NotMappedError,
    current_mappings,
    find_mapping,
    mapped_texts,
    mapping_history,
    teach,
)
from statesvc.inbox.rollouts.mapped_code import PrintedCode
from statesvc.log.archive.folder import archive_folder
from statesvc.repair.dead_letters.dead_letter import SENTENCES
from statesvc.repair.dead_letters.reread import Rereader
from statesvc.repair.renormalize.renormalize import RereadTask
from statesvc.repair.teaching.code_events import NO_EVENT, as_events_have_it
from statesvc.repair.teaching.mapping_list import ListedMapping, export, listed
from statesvc.repair.teaching.preview import CodeMeaning, MappingPreview, preview_mapping
from statesvc.repair.teaching.reread_code import CodeReread, RereadRequest
from statesvc.repair.teaching.unmapped_codes import UnmappedCode, unmapped_codes
from statesvc.roles.master_key import open_master_keys
from statesvc.settings.service_settings import Settings, load_settings

_EXAMPLES_SHOWN: Final = 2
Connection = AsyncConnection[Any]


def configure_mapping(commands: Subcommands) -> None:
    """What the commands take."""
    unmapped = commands.add_parser("unmapped", help="codes that no mapping knows yet, and codes read by their category only")
    unmapped.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="for scripts")
    for name, summary in (("map", "say what a code means, or list what was said"), ("unmap", "read a code as the normalizer says, again")):
        command = commands.add_parser(name, help=f"{summary}; shows what it would change, and changes it with --yes")
        command.add_argument("carrier", nargs="?" if name == "map" else None, help="a carrier id")
        command.add_argument("--type", help="the type as the carrier prints it, where it prints one")
        command.add_argument("--code", help="the code as the carrier prints it, TYPE/CODE as `unmapped` does, or the text in its place")
        command.add_argument("--carrier-reason", metavar="CODE", help="only with this reason code next to it (default: any)")
        command.add_argument("--text", help="only with this text; alone where the carrier prints no code (default: any)")
        command.add_argument("--why", default="", help="recorded in the log; needed with --yes")
        command.add_argument("--yes", action="store_true", help="make the change; without it, only show it")
        command.add_argument("--renormalize", action="store_true", help="with --yes: read the history of the code again at once")
        command.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="for scripts")
        if name == "map":
            meaning = command.add_mutually_exclusive_group()
            statuses = [status.value for status in Status if status is not Status.UNKNOWN]
            meaning.add_argument("--status", choices=statuses, metavar="STATUS", help=f"it is a scan: {', '.join(statuses)}")
            meaning.add_argument("--info", action="store_true", help="the code only informs; it never changes the status")
            meaning.add_argument("--list", action="store_true", help="list the mappings, of one carrier or of all")
            meaning.add_argument("--show", type=int, metavar="REVISION", help="show a mapping and what came before it")
            meaning.add_argument("--export", action="store_true", help="print the carrier's mappings as a patch of its table")
            command.add_argument("--force", action="store_true", help="map the code although no event has it")
            command.add_argument("--reason", choices=[reason.value for reason in Reason], metavar="REASON", help="the reason of the scan")


def run_mapping(options: argparse.Namespace) -> int:
    """Lists, shows, exports, previews or teaches."""
    settings = load_settings()
    if options.what == "unmapped":
        return asyncio.run(_unmapped(settings, as_json=options.json))
    if options.what == "map" and options.list:
        return asyncio.run(_list(settings, options))
    if options.what == "map" and options.show is not None:
        return asyncio.run(_show(settings, options))
    if options.carrier is None:
        raise CommandError("name the carrier", exit_code=2)
    carrier_named(options.carrier)
    if options.what == "map" and options.export:
        return asyncio.run(_export(settings, options))
    return asyncio.run(_teach(settings, options))


def _printed(options: argparse.Namespace) -> PrintedCode:
    printed = PrintedCode(
        carrier_id=options.carrier,
        raw_type=options.type,
        raw_code=options.code,
        raw_reason=options.carrier_reason,
        raw_text=options.text,
    )
    if printed.refusal is not None:
        raise CommandError(f"{printed.refusal} (--type, --code, --text; `statesvc carriers unmapped` lists codes)", exit_code=2)
    if options.yes and not options.why.strip():
        raise CommandError("--why is missing: it stands in the log", exit_code=2)
    if options.renormalize and not options.yes:
        raise CommandError("--renormalize needs --yes", exit_code=2)
    return printed


def _meaning(options: argparse.Namespace) -> Meaning | None:
    if options.what == "unmap":
        return None
    if options.status is None and not options.info:
        raise CommandError("say what the code means: --status or --info (or --list, --show, --export)", exit_code=2)
    if options.info and options.reason:
        raise CommandError("--reason belongs to a scan: name its --status", exit_code=2)
    kind = Kind.INFO if options.info else Kind.SCAN
    return Meaning(kind, Status(options.status) if options.status else None, Reason(options.reason) if options.reason else None)


async def _teach(settings: Settings, options: argparse.Namespace) -> int:
    printed, meaning = _printed(options), _meaning(options)
    async with service_connection(settings) as connection:
        keyring = await load_keyring(connection, await open_master_keys(settings, connection))
        digest = keyring.carrier_digest(options.carrier)
        printed = await as_events_have_it(connection, printed, digest)
        code = printed.clear(digest)
        task = RereadTask(
            carrier=settings.in_account_zones(CARRIERS)[options.carrier],
            keyring=keyring,
            writer=f"{socket.gethostname()}-preview-{os.getpid()}",
            actor=actor(),
            rolls_back=True,
            archive=archive_folder(settings),
        )
        preview = await preview_mapping(connection, task, code, meaning)
        if meaning is None and preview.in_effect is None:
            raise CommandError("no mapping of the code is in effect: the normalizer reads it")
        if not options.json:
            _write_preview(preview, meaning)
        if meaning is not None and not preview.events and not options.force:
            raise CommandError(f"{NO_EVENT}; --force maps it all the same")
        if not options.yes:
            if options.json:
                write_json(preview.model_dump(mode="json", by_alias=True))
            else:
                write_line("nothing was changed; --yes does it, --yes --renormalize reads the history again, too")
            return 0
        revision = await _apply(connection, keyring, printed, meaning, options, replaces=preview.replaces)
        document: dict[str, Any] = {"revision": revision, "preview": preview.model_dump(mode="json", by_alias=True)}
        if options.renormalize:
            request = RereadRequest(code=code, revision=revision, actor=actor(), why=options.why)
            document["renormalized"] = await _reread(connection, settings, keyring, request)
    if options.json:
        write_json(document)
    else:
        _write_applied(document, options)
    return 0


async def _apply(
    connection: Connection, keyring: Keyring, printed: PrintedCode, meaning: Meaning | None, options: argparse.Namespace, *, replaces: int
) -> int:
    try:
        return await teach(connection, keyring, printed, meaning, why=options.why, actor=actor(), replaces=replaces)
    except MappingChangedError as error:
        raise CommandError(f"nothing was done: {error}; look at it again (`statesvc carriers map --show {error.revision}`)") from error
    except NotMappedError as error:
        raise CommandError("no mapping of the code is in effect: the normalizer reads it") from error


async def _reread(connection: Connection, settings: Settings, keyring: Keyring, request: RereadRequest) -> dict[str, Any]:
    async def wake(channels: frozenset[str]) -> None:
        await notify(connection, *sorted(channels))

    writer = f"{socket.gethostname()}-renormalize-{os.getpid()}"
    run = CodeReread(
        connections=SingleConnection(connection),
        rereader=Rereader(keyring=keyring, carriers=settings.in_account_zones(CARRIERS), writer=writer, archive=archive_folder(settings)),
        request=request,
        wake=wake,
    )
    report = await run.run()
    return {
        "messages": report.messages,
        "corrected": report.corrected,
        "unreadable": report.unreadable,
        "transitions": report.transitions,
        "notifications": report.notifications,
        "dead_letter_id": run.dead_letter_id,
        "dead_letter_left": None if run.obstacle is None else SENTENCES[run.obstacle],
    }


def _write_preview(preview: MappingPreview, meaning: Meaning | None) -> None:
    now = "the normalizer reads it" if preview.in_effect is None else f"read as {_words(preview.in_effect)}"
    then = "as the normalizer says" if meaning is None else f"as {_words(CodeMeaning.of(meaning))}"
    least = "at least " if preview.counts_capped else ""
    write_line(f"now {now}; would be read {then}")
    write_line(f"{least}{preview.events} events of {preview.shipments} shipments in {preview.messages} messages have the code")
    if not preview.messages:
        return
    of = "" if preview.previewed_messages == preview.messages else f" of the newest {preview.previewed_messages} messages"
    write_line(
        f"read again{of}: {preview.corrected} events differ, {preview.transitions} shipments change status, "
        f"{preview.updates} change otherwise, {preview.notifications} notifications go out"
    )
    if preview.readings:
        write_table(("EVENTS READ AS", "WOULD BE", "EVENTS"), [(each.from_, each.to, each.events) for each in preview.readings])
    if preview.moved:
        write_table(("SHIPMENTS IN", "WOULD BE", "SHIPMENTS"), [(each.from_, each.to, each.shipments) for each in preview.moved])
        write_table(("FOR EXAMPLE", "FROM", "TO"), [(each.tracking_number, each.from_, each.to) for each in preview.examples[:5]])
    if preview.unreadable:
        write_line(f"{preview.unreadable} events stay as they are: their message cannot be read again, and their codes do not decide")


def _write_applied(document: dict[str, Any], options: argparse.Namespace) -> None:
    write_line(f"revision {document['revision']}; in effect at the next claim")
    done = document.get("renormalized")
    if done is None:
        before = "dead-letters replay --cause unknown_code" if options.what == "map" else "renormalize"
        write_line(f"what was read before: statesvc {before} --carrier {options.carrier}")
        return
    write_line(
        f"{done['messages']} messages read again: {done['corrected']} events corrected, {done['transitions']} changes of status, "
        f"{done['notifications']} notifications"
    )
    if done["dead_letter_left"] is not None:
        write_line(f"dead letter {done['dead_letter_id']} stays open: {done['dead_letter_left']}")


async def _list(settings: Settings, options: argparse.Namespace) -> int:
    if options.carrier is not None:
        carrier_named(options.carrier)
    async with service_connection(settings) as connection:
        keyring = await load_keyring(connection, await open_master_keys(settings, connection))
        rows = [row for row in await current_mappings(connection, carrier_id=options.carrier) if row.kind is not None]
        carriers = sorted({row.carrier_id for row in rows} & CARRIERS.keys())
        texts = {each: await mapped_texts(connection, keyring, CARRIERS[each]) for each in carriers}
    _write_mappings([listed(CARRIERS[row.carrier_id], row, texts[row.carrier_id]) for row in rows if row.carrier_id in texts], options)
    return 0


async def _show(settings: Settings, options: argparse.Namespace) -> int:
    async with service_connection(settings) as connection:
        keyring = await load_keyring(connection, await open_master_keys(settings, connection))
        found = await find_mapping(connection, options.show)
        if found is None or found.carrier_id not in CARRIERS:
            raise CommandError(f"there is no revision {options.show}")
        texts = await mapped_texts(connection, keyring, CARRIERS[found.carrier_id])
        rows = await mapping_history(connection, found.code)
    _write_mappings([listed(CARRIERS[row.carrier_id], row, texts) for row in rows], options)
    return 0


async def _export(settings: Settings, options: argparse.Namespace) -> int:
    async with service_connection(settings) as connection:
        keyring = await load_keyring(connection, await open_master_keys(settings, connection))
        texts = await mapped_texts(connection, keyring, CARRIERS[options.carrier])
        rows = await current_mappings(connection, carrier_id=options.carrier)
    exported = export(CARRIERS[options.carrier], rows, texts)
    if options.json:
        write_json(exported.model_dump(mode="json"))
        return 0
    # lines that no patch takes for its own: the output can be piped as it is
    for revision in exported.redundant:
        write_line(f"# revision {revision} is redundant: the table says the same; `statesvc carriers unmap` takes it back")
    for left in exported.left_out:
        write_line(f"# revision {left.revision} is left out: {left.why}")
    write_line(exported.patch.rstrip("\n") if exported.patch else "# nothing to change")
    return 0


def _write_mappings(found: list[ListedMapping], options: argparse.Namespace) -> None:
    if options.json:
        write_json([each.model_dump(mode="json") for each in found])
    elif found:
        rows = [
            (
                each.revision,
                each.carrier_id,
                _code(each),
                _words(each.meaning) if each.meaning else "as the normalizer says",
                _words(each.shipped) if each.shipped else None,
                "redundant" if each.redundant else None,
                f"{each.added_at:%Y-%m-%d %H:%M}",
                each.added_by,
                each.why,
            )
            for each in found
        ]
        write_table(("REVISION", "CARRIER", "CODE", "READ AS", "TABLE SAYS", "", "ADDED", "BY", "WHY"), rows)
    else:
        write_line("no code is mapped")


def _code(each: ListedMapping) -> str:
    texts = each.texts or {}
    parts = (("", each.raw_type), ("", each.raw_code), ("reason ", each.raw_reason), ("text ", each.raw_text))
    return "/".join(f"{label}{texts.get(part, part)}" for label, part in parts if part is not None)


def _words(meaning: CodeMeaning | None) -> str:
    if meaning is None:
        return "the normalizer says"
    return " ".join(each for each in (meaning.status or meaning.kind, meaning.reason) if each)


def _command(code: UnmappedCode) -> str:
    """What maps it. Of a text only its place is listed: a history, or a sample of the console, has the text itself."""
    parts = (("--type", code.raw_type), ("--code", code.raw_code))
    named = [f"{option} {'TEXT' if part == TEXT else shlex.quote(part)}" for option, part in parts if part is not None]
    meant = ["--status STATUS"]
    if code.proposed is not None:
        meant = [f"--status {code.proposed.status}", *((f"--reason {code.proposed.reason}",) if code.proposed.reason else ())]
    return " ".join(["statesvc carriers map", code.carrier_id, *(named or ["--text TEXT"]), *meant])


async def _keyring_if_any(settings: Settings, connection: Connection) -> Keyring | None:
    """Without the master key the codes are listed, and nothing is proposed."""
    try:
        return await load_keyring(connection, await open_master_keys(settings, connection))
    except (MasterKeyError, KmsError):
        return None


async def _unmapped(settings: Settings, *, as_json: bool) -> int:
    async with service_connection(settings) as connection:
        found = await unmapped_codes(connection, keyring=await _keyring_if_any(settings, connection))
    if as_json:
        write_json([each.model_dump(mode="json") for each in found])
    elif found:
        rows = [
            (
                each.carrier_id,
                each.carrier_code or "(no code)",
                each.read.replace("_", " "),
                each.events,
                each.shipments,
                f"{each.since:%Y-%m-%dT%H:%M:%S%z}",
                each.dead_letter_id,
                f"{_words(each.mapped)}: replay its dead letter" if each.mapped else None,
                f"{each.proposed.status}: {each.proposed.why}" if each.proposed else None,
                " ".join(map(str, each.message_ids[:_EXAMPLES_SHOWN])),
            )
            for each in found
        ]
        write_table(("CARRIER", "CODE", "READ", "EVENTS", "SHIPMENTS", "SINCE", "DEAD LETTER", "MAPPED", "PROPOSED", "EXAMPLES"), rows)
        write_line("\nto say what one means (first it shows what would change):")
        for each in found:
            if each.mapped is None:
                write_line(f"  {_command(each)}")
    else:
        write_line("every code that was pushed is mapped")
    return 0
