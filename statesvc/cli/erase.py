"""`statesvc erase CARRIER TRACKING --why "..."`: make a shipment's personal data unreadable, everywhere and for ever."""

import argparse
import asyncio
from typing import Final

from statesvc.api.key_words import NO_PLACE
from statesvc.cli.api_calls import Json, work
from statesvc.cli.command_error import CommandError
from statesvc.cli.operation_table import add_fields
from statesvc.cli.output import write_json, write_line
from statesvc.cli.service_calls import api_calls

_NUMBER: Final = ("carrier_id", "tracking_number")
_ORDER: Final = ("discriminator", "why", "override_hold")


def configure(parser: argparse.ArgumentParser) -> None:
    add_fields(
        parser,
        "erase_shipment",
        *_NUMBER,
        *_ORDER,
        arguments=_NUMBER,
        why="recorded in the log: no personal data here",
    )
    parser.add_argument("--json", action="store_true", help="for scripts")


def run(options: argparse.Namespace) -> int:
    if not options.why.strip():
        raise CommandError("--why must say why", exit_code=2)
    done = asyncio.run(_erase(options))
    if options.json:
        write_json(done)
    else:
        _write(done)
    return 0


async def _erase(options: argparse.Namespace) -> dict[str, Json]:
    """Erase all of it; what the first answer says of the shipments holds, for the next ones find them erased."""
    given = {name: getattr(options, name) for name in _NUMBER}
    order = {name: value for name in _ORDER if (value := getattr(options, name)) is not None}
    done: dict[str, Json] = {}
    async with api_calls(options) as calls:
        async for progress, answer in work(
            calls, "erase_shipment", order, counted="dead letters", **given
        ):
            done = {**answer, **done, **progress.sums}
    return {
        name: value
        for name, value in done.items()
        if name not in {"next_cursor", "dead_letters_left"}
    }


def _write(done: Json) -> None:
    for shipment_id in done["erased"]:
        write_line(f"erased: shipment {shipment_id}")
    for shipment_id in done["already_erased"]:
        write_line(f"was erased before: shipment {shipment_id}")
    named, searched = done["dead_letters_named"], done["dead_letters_searched"]
    write_line(
        f"{named} of {searched} dead letters of the carrier named it, and are unreadable now"
    )
    write_line(
        f"complete on {done['complete_at'][:10]}, when the last backup that holds the key expires (STATESVC_BACKUP_DAYS)"
    )
    if done["tombstones"]:
        write_line(
            f"a restore does not undo it: tombstones lie in {', '.join(done['tombstones'])}, for `statesvc log fork`"
        )
    else:
        write_line(NO_PLACE)
