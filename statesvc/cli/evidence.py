"""`statesvc evidence CARRIER TRACKING --out FILE`: one document that stands by itself; what the file is called says which."""

import argparse
import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from events.recipes import discriminator_of, number_of
from statesvc.cli.arguments import carrier_named
from statesvc.cli.command_error import CommandError
from statesvc.cli.output import write_line
from statesvc.cli.session import actor, service_connection
from statesvc.database.keyring_store import load_keyring
from statesvc.evidence.evidence_report import report_of
from statesvc.evidence.gather import Wanted, gather
from statesvc.evidence.html_page import html_of
from statesvc.evidence.pdf import annex_pages, print_report
from statesvc.log.archive.folder import archive_folder
from statesvc.log.archive.log_archive import LogArchive
from statesvc.log.snapshot import take_snapshot
from statesvc.operations.personal_readings import PersonalReading, record_at_once
from statesvc.roles.master_key import open_master_keys
from statesvc.settings.service_settings import load_settings

_KINDS = (".json", ".html", ".pdf")


def configure(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("carrier", help="a carrier id")
    parser.add_argument("tracking", help="the tracking number, in any spelling")
    parser.add_argument("--discriminator", help="where the number was used twice: which one (default: the latest)")
    parser.add_argument("--out", required=True, type=Path, metavar="FILE", help="ends in .json (verifies by itself), .html or .pdf")
    parser.add_argument(
        "--without-personal-data", action="store_true", help="no personal parts and no bodies; the proofs hold all the same"
    )


def run(options: argparse.Namespace) -> int:
    """Writes the file."""
    carrier_named(options.carrier)
    if options.out.suffix not in _KINDS:
        raise CommandError(f"--out must end in {', '.join(_KINDS)}", exit_code=2)
    bundle = asyncio.run(_bundle(options))
    for path, content in _printed(bundle, options.out):
        path.write_bytes(content)
        write_line(f"{path}: {len(bundle['entries'])} entries of the log, sealed {bundle['log']['sealed_at']}")
    return 0


def _printed(bundle: dict[str, Any], out: Path) -> Iterator[tuple[Path, bytes]]:
    """The file, and its annex where that is one of its own."""
    match out.suffix:
        case ".json":
            yield out, orjson.dumps(bundle, option=orjson.OPT_INDENT_2)
        case ".html":
            yield out, html_of(report_of(bundle))
        case _:
            report = report_of(bundle)
            printed = print_report(report)
            yield out, printed.document.content
            if printed.has_annex:
                yield out.with_stem(f"{out.stem}-annex"), annex_pages(report).content


async def _bundle(options: argparse.Namespace) -> dict[str, Any]:
    settings = load_settings()
    async with service_connection(settings) as connection:
        wanted = Wanted(
            carrier_id=options.carrier,
            number=number_of(options.carrier, options.tracking),
            discriminator=discriminator_of(options.carrier, options.discriminator),
            keyring=await load_keyring(connection, await open_master_keys(settings, connection)),
            personal=not options.without_personal_data,
            archive=archive_folder(settings),
        )
        await LogArchive(wanted.archive).bring_back_number(connection, wanted.carrier_id, wanted.number)
        async with connection.transaction():
            await take_snapshot(connection)
            bundle = await gather(connection, wanted)
        if wanted.personal:
            target = f"shipment {bundle['shipment']['shipment_id']}"
            details = {"call": "evidence", "carrier_id": options.carrier}
            await record_at_once(connection, PersonalReading(actor=actor(), target=target, details=details))
    return bundle
