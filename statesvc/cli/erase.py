"""`statesvc erase CARRIER TRACKING --why "..."`: make a shipment's personal data unreadable, everywhere and for ever."""

import argparse
import asyncio

from statesvc.cli.arguments import carrier_named
from statesvc.cli.command_error import CommandError
from statesvc.cli.output import NO_PLACE, write_json, write_line
from statesvc.cli.session import actor, service_connection
from statesvc.cli.tombstone_places import configured_tombstones, publish_tombstones
from statesvc.database.keyring_store import load_keyring
from statesvc.log.archive.folder import archive_folder
from statesvc.repair.erasure import DeadLetterSearch, Erased, ErasedDeadLetters, Erasure, erase, erase_dead_letters
from statesvc.roles.master_key import open_master_keys
from statesvc.settings.service_settings import load_settings


def configure(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("carrier", help="a carrier id")
    parser.add_argument("tracking", help="the tracking number, in any spelling")
    parser.add_argument("--discriminator", help="erase only the shipment with this discriminator (default: every shipment with the number)")
    parser.add_argument("--why", required=True, help="recorded in the log: no personal data here")
    parser.add_argument("--override-hold", action="store_true", help="even under a legal hold")
    parser.add_argument("--json", action="store_true", help="for scripts")


def run(options: argparse.Namespace) -> int:
    """Erases."""
    carrier_named(options.carrier)
    if not options.why.strip():
        raise CommandError("--why must say why", exit_code=2)
    erased, dead_letters, places = asyncio.run(_run(options))
    if options.json:
        write_json(
            {
                "erased": list(map(str, erased.shipments)),
                "already_erased": list(map(str, erased.already)),
                "complete_at": erased.complete_at.isoformat(),
                "tombstones": places,
                "dead_letters": {"searched": dead_letters.searched, "named": dead_letters.named},
            }
        )
        return 0
    for shipment_id in erased.shipments:
        write_line(f"erased: shipment {shipment_id}")
    for shipment_id in erased.already:
        write_line(f"was erased before: shipment {shipment_id}")
    write_line(f"{dead_letters.named} of {dead_letters.searched} dead letters of the carrier named it, and are unreadable now")
    write_line(f"complete on {erased.complete_at:%Y-%m-%d}, when the last backup that holds the key expires (STATESVC_BACKUP_DAYS)")
    if places:
        write_line(f"a restore does not undo it: tombstones lie in {', '.join(places)}, for `statesvc log fork`")
    else:
        write_line(NO_PLACE)
    return 0


async def _run(options: argparse.Namespace) -> tuple[Erased, ErasedDeadLetters, list[str]]:
    settings = load_settings()
    tombstones = configured_tombstones(settings)
    erasure = Erasure(
        carrier_id=options.carrier,
        tracking_number=options.tracking,
        discriminator=options.discriminator,
        why=options.why,
        actor=actor(),
        override_hold=options.override_hold,
        backup_days=settings.keys.backup_days,
    )
    async with service_connection(settings) as connection:
        keyring = await load_keyring(connection, await open_master_keys(settings, connection))
        erased = await erase(connection, erasure)
        search = DeadLetterSearch(
            carrier_id=erasure.carrier_id,
            number=erasure.number,
            actor=erasure.actor,
            keyring=keyring,
            folder=archive_folder(settings),
        )
        total, after = ErasedDeadLetters(), 0
        while True:
            some = await erase_dead_letters(connection, search, after=after)
            total.searched += some.searched
            total.named += some.named
            if some.next_after is None:
                await publish_tombstones(tombstones, erased.tombstones)
                return erased, total, tombstones.names
            after = some.next_after
