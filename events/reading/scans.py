"""The scans of one shipment, as a format's module finds them, on their way to readings (`events.reading.scan` says what a scan needs)."""

from collections.abc import Iterable
from typing import NamedTuple

from events.event import NOWHERE, Moment, Place, Raw, Reading, Rejection
from events.reading.meanings import Meaning
from events.reading.scan import scan


class Scan(NamedTuple):
    """One scan. `where` is its pointer in the message; `time` is None where it is printed in no known format."""

    where: str
    raw: Raw
    meaning: Meaning
    time: Moment | None
    place: Place = NOWHERE
    description: str | None = None
    signed_by: object = None
    """As printed; a placeholder is nobody."""
    by_category: bool = False
    discriminator: str = ""
    piece: str | None = None
    native_id: str | None = None
    native_id_per_number: bool = False


def readings_of(scans: Iterable[Scan], number: str | None, rejections: list[Rejection]) -> list[Reading]:
    """The readings of the shipment `number` in their order; scans that are none are added to `rejections`."""
    found: list[Reading] = []
    for one in scans:
        found += scan(
            pointer=one.where,
            rejections=rejections,
            number=number,
            raw=one.raw,
            meaning=one.meaning,
            time=one.time,
            place=one.place,
            description=one.description,
            signatory=one.signed_by,
            by_category=one.by_category,
            discriminator=one.discriminator,
            piece=one.piece,
            native_id=one.native_id,
            native_id_per_number=one.native_id_per_number,
        )
    return found
