"""What UPS's status codes mean. Only (type, code) means something: the same code stands in several of UPS's tables.

`ups_codes.csv` is the small-parcel vocabulary. A code that it lacks is read by its type where the type alone says what happened
(M, MV, I, U); never for X (exception: anything from a refund to a fire) or D (a locker is not the consignee).
"""

from functools import cache
from typing import Final

from events.event import Raw
from events.parsing.meanings import UNMAPPED, Meaning, meanings
from events.vocabulary import Kind, Status

_BY_TYPE: Final = {
    "M": Meaning(Kind.SCAN, Status.INFO_RECEIVED),
    "MV": Meaning(Kind.SCAN, Status.CANCELLED),
    "I": Meaning(Kind.SCAN, Status.IN_TRANSIT),
    "U": Meaning(Kind.INFO),
}
_DESTINATION_SCAN: Final = ("I", "DS")
_OUT_FOR_DELIVERY: Final = frozenset({"out for delivery", "out for delivery today"})


def meaning(status_type: str | None, code: str | None, text: str | None) -> Meaning:
    """The meaning of a status. `text` decides only for I/DS, which UPS prints for two things."""
    key = (status_type or "", code or "")
    if key == _DESTINATION_SCAN and text is not None and text.casefold().rstrip(".") in _OUT_FOR_DELIVERY:
        return Meaning(Kind.SCAN, Status.OUT_FOR_DELIVERY)
    known = _table().get(key)
    if known is not None:
        return known
    by_type = _BY_TYPE.get(key[0]) if code else None
    return UNMAPPED if by_type is None else by_type.of_category()


def reread(raw: Raw) -> Meaning | None:
    """A status whose text is not known."""
    return None if (raw.type, raw.code) == _DESTINATION_SCAN else meaning(raw.type, raw.code, None)


@cache
def _table() -> dict[tuple[str, ...], Meaning]:
    return meanings("ups_codes.csv")
