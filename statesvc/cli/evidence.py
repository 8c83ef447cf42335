"""`statesvc evidence CARRIER TRACKING --out FILE`: one document that stands by itself; what the file is called says which."""

import argparse
import asyncio
from pathlib import Path

from pydantic import ValidationError

from events.recipes import discriminator_of, number_of
from statesvc.cli.arguments import carrier_named, rfc3339_time
from statesvc.cli.command_error import CommandError
from statesvc.cli.output import write_line
from statesvc.cli.session import actor, service_connection
from statesvc.database.keyring_store import load_keyring
from statesvc.evidence.bundle import FORMS
from statesvc.evidence.evidence_forms import EvidenceFile, print_form
from statesvc.evidence.gather import GatheredEvidence, Wanted, gather
from statesvc.evidence.made_evidence import record_evidence
from statesvc.evidence.merchant_statement import MerchantStatement
from statesvc.log.archive.folder import archive_folder
from statesvc.log.archive.log_archive import LogArchive
from statesvc.log.snapshot import take_snapshot
from statesvc.operations.personal_readings import PersonalReading, record_at_once
from statesvc.roles.master_key import open_master_keys
from statesvc.settings.service_settings import load_settings


def configure(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("carrier", help="a carrier id")
    parser.add_argument("tracking", help="the tracking number, in any spelling")
    parser.add_argument("--discriminator", help="where the number was used twice: which one (default: the latest)")
    parser.add_argument(
        "--out",
        required=True,
        type=Path,
        metavar="FILE",
        help="ends in .pdf, .html, .json (verifies by itself) or .zip (all, with a verifier)",
    )
    parser.add_argument("--as-of", type=rfc3339_time, metavar="T", help="what we knew then: RFC 3339, such as 2026-05-03T00:00:00Z")
    parser.add_argument("--case", type=Path, metavar="FILE", help="JSON of what the merchant states; that it was asked for is recorded")
    parser.add_argument(
        "--without-personal-data", action="store_true", help="no personal parts and no bodies; the proofs hold nevertheless"
    )


def run(options: argparse.Namespace) -> int:
    """Writes the file, and its annex where that is one of its own."""
    carrier_named(options.carrier)
    if options.out.suffix not in FORMS:
        raise CommandError(f"--out must end in {', '.join(FORMS)}", exit_code=2)
    statement = None if options.case is None else _statement(options.case)
    gathered, printed = asyncio.run(_make(options, statement))
    _write(options.out, gathered, printed.content)
    if printed.has_annex:
        annex = options.out.with_stem(f"{options.out.stem}-annex")
        _write(annex, gathered, print_form(gathered, FORMS[annex.suffix], "annex").content)
    return 0


def _write(path: Path, gathered: GatheredEvidence, content: bytes) -> None:
    path.write_bytes(content)
    write_line(f"{path}: {len(gathered.bundle['entries'])} entries of the log, sealed {gathered.bundle['log']['sealed_at']}")


def _statement(path: Path) -> MerchantStatement:
    try:
        return MerchantStatement.model_validate_json(path.read_bytes())
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {type(error).__name__}", exit_code=2) from None
    except ValidationError as error:
        # without the values, which are personal
        wrong = "; ".join(f"{'.'.join(map(str, each['loc'])) or 'the file'}: {each['msg']}" for each in error.errors(include_input=False))
        raise CommandError(f"{path}: {wrong}", exit_code=2) from None


async def _make(options: argparse.Namespace, statement: MerchantStatement | None) -> tuple[GatheredEvidence, EvidenceFile]:
    settings = load_settings()
    async with service_connection(settings) as connection:
        wanted = Wanted(
            carrier_id=options.carrier,
            number=number_of(options.carrier, options.tracking),
            discriminator=discriminator_of(options.carrier, options.discriminator),
            keyring=await load_keyring(connection, await open_master_keys(settings, connection)),
            personal=not options.without_personal_data,
            archive=archive_folder(settings),
            as_of=options.as_of,
            statement=statement,
        )
        await LogArchive(wanted.archive).bring_back_number(connection, wanted.carrier_id, wanted.number)
        async with connection.transaction():
            await take_snapshot(connection)
            gathered = await gather(connection, wanted)
        printed = print_form(gathered, FORMS[options.out.suffix])
        if wanted.statement is not None:
            await record_evidence(connection, gathered.bundle, printed.content, actor=actor(), form=FORMS[options.out.suffix])
        if wanted.personal:
            target = f"shipment {gathered.bundle['shipment']['shipment_id']}"
            details = {"call": "evidence", "carrier_id": options.carrier}
            await record_at_once(connection, PersonalReading(actor=actor(), target=target, details=details))
    return gathered, printed
