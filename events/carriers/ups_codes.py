"""What UPS's status codes mean. Only (type, code) means something: the same code stands in several of UPS's tables.

`ups_codes.csv` is the small-parcel vocabulary. A code that it lacks is read by its type where the type alone says what happened
(M, MV, I, U); never for X (exception: anything from a refund to a fire) or D (a locker is not the consignee).
"""

import csv
from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple

from events.vocabulary import Kind, Reason, Status


class Meaning(NamedTuple):
    """Our reading of a code."""

    kind: Kind
    status: Status | None
    reason: Reason | None = None
    by_category: bool = False


UNMAPPED: Final = Meaning(Kind.UNMAPPED, None)

_BY_TYPE: Final = {
    "M": Meaning(Kind.SCAN, Status.INFO_RECEIVED, by_category=True),
    "MV": Meaning(Kind.SCAN, Status.CANCELLED, by_category=True),
    "I": Meaning(Kind.SCAN, Status.IN_TRANSIT, by_category=True),
    "U": Meaning(Kind.INFO, None, by_category=True),
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
    return _BY_TYPE.get(key[0], UNMAPPED) if code else UNMAPPED


@cache
def _table() -> dict[tuple[str, str], Meaning]:
    rows = csv.DictReader(files("events.carriers").joinpath("ups_codes.csv").read_text("utf-8").splitlines())
    return {
        (row["type"], row["code"]): Meaning(
            Kind(row["kind"]), Status(row["status"]) if row["status"] else None, Reason(row["reason"]) if row["reason"] else None
        )
        for row in rows
    }
