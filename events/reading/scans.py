"""From the scans of one shipment, as a format's module finds them, to readings.

What holds for every carrier stands here once: a scan needs a code or a text and a time that can be read, else it is a rejection; who
signed is told by a delivery only.
"""

from collections.abc import Iterable
from typing import NamedTuple

from events.event import NOWHERE, Moment, Place, Raw, Reading, Rejection
from events.reading.meanings import Meaning
from events.reading.text import signer
from events.vocabulary import Status


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
    found = []
    for scan in scans:
        raw, time, meaning = scan.raw, scan.time, scan.meaning
        if raw.code is None and raw.type is None and scan.description is None:
            rejections.append(Rejection(pointer=scan.where, why="neither a code nor a text"))
            continue
        if time is None:
            rejections.append(Rejection(pointer=scan.where, why="a time in no known format"))
            continue
        found.append(
            Reading(
                tracking_number=number,
                kind=meaning.kind,
                status=meaning.status,
                reason=meaning.reason,
                by_category=scan.by_category,
                raw=raw,
                time=time,
                place=scan.place,
                discriminator=scan.discriminator,
                piece=scan.piece,
                native_id=scan.native_id,
                native_id_per_number=scan.native_id_per_number,
                description=scan.description,
                signed_by=signer(scan.signed_by) if meaning.status is Status.DELIVERED else None,
            )
        )
    return found
