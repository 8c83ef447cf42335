"""One scan of a carrier as a reading, with what holds for every format.

A scan with neither a code nor a text, or with a time in no known format, is no event but a rejection of its member; who signed is told
by a delivery only.
"""

from events.event import NOWHERE, Moment, Place, Raw, Reading, Rejection
from events.reading.meanings import Meaning
from events.reading.text import signer
from events.vocabulary import Status

NO_WORDS = "neither a code nor a text"
NO_FORMAT = "a time in no known format"


def scan(
    *,
    pointer: str,
    rejections: list[Rejection],
    number: str | None,
    raw: Raw,
    meaning: Meaning,
    time: Moment | None,
    place: Place = NOWHERE,
    description: str | None = None,
    signatory: object = None,
    by_category: bool = False,
    discriminator: str = "",
    piece: str | None = None,
    native_id: str | None = None,
    native_id_per_number: bool = False,
) -> tuple[Reading, ...]:
    """The reading, or none and a rejection under `pointer`. `time` is None where it was unreadable; `signatory` as printed."""
    if description is None and raw.code is None and raw.type is None:
        rejections.append(Rejection(pointer=pointer, why=NO_WORDS))
        return ()
    if time is None:
        rejections.append(Rejection(pointer=pointer, why=NO_FORMAT))
        return ()
    return (
        Reading(
            tracking_number=number,
            kind=meaning.kind,
            status=meaning.status,
            reason=meaning.reason,
            by_category=by_category,
            raw=raw,
            time=time,
            place=place,
            discriminator=discriminator,
            piece=piece,
            native_id=native_id,
            native_id_per_number=native_id_per_number,
            description=description,
            signed_by=signer(signatory) if meaning.status is Status.DELIVERED else None,
        ),
    )
