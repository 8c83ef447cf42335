"""The scans of a shipment on their way to readings, with the rules for every format.

A scan with neither a code nor a text, or with a time in an unknown format, is no event but a
rejection of its member; a signer counts on a delivery only.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final, NamedTuple

from events.event import NOWHERE, EventPlace, PrintedTime, Raw, Reading
from events.parsing.meanings import Meaning
from events.parsing.rejections import Rejections
from events.parsing.text import signer
from events.parsing.whereabouts import carrier_of
from events.vocabulary import Status

NO_WORDS: Final = "neither a code nor a text"
NO_FORMAT: Final = "a time in no known format"


class Scan(NamedTuple):
    """A scan. `where` is its pointer in the message; `time` is None for an unknown format."""

    where: str
    raw: Raw
    meaning: Meaning
    time: PrintedTime | None
    place: EventPlace = NOWHERE
    description: str | None = None
    signed_by: object = None
    """Signer as printed; placeholders are dropped."""
    discriminator: str = ""
    piece: str | None = None
    native_id: str | None = None
    native_id_per_number: bool = False


def carried_by(readings: Iterable[Reading], name: str | None) -> list[Reading]:
    """Return the readings of an aggregator's shipment, with the carrier that it names."""
    carrier_id = carrier_of(name)
    return (
        [replace(reading, parcel_carrier_id=carrier_id) for reading in readings]
        if carrier_id
        else list(readings)
    )


def readings_of(
    scans: Iterable[Scan], number: str | None, rejections: Rejections, *, service: str | None = None
) -> list[Reading]:
    """Return the readings of the shipment `number` in their order; scans that are none are added to
    `rejections`. `service`: as printed.
    """
    found: list[Reading] = []
    for scan in scans:
        found += reading_of(scan, number, rejections, service=service)
    return found


def reading_of(
    scan: Scan, number: str | None, rejections: Rejections, *, service: str | None = None
) -> tuple[Reading, ...]:
    """Read a scan; on failure return None and add a rejection."""
    raw, meaning = scan.raw, scan.meaning
    if scan.description is None and raw.code is None and raw.type is None:
        rejections.add(scan.where, NO_WORDS)
        return ()
    if scan.time is None:
        rejections.add(scan.where, NO_FORMAT)
        return ()
    return (
        Reading(
            tracking_number=number,
            kind=meaning.kind,
            status=meaning.status,
            reason=meaning.reason,
            by_category=meaning.by_category,
            raw=raw,
            time=scan.time,
            place=scan.place,
            discriminator=scan.discriminator,
            piece=scan.piece,
            native_id=scan.native_id,
            native_id_per_number=scan.native_id_per_number,
            description=scan.description,
            signed_by=signer(scan.signed_by) if meaning.status is Status.DELIVERED else None,
            service=service,
        ),
    )
