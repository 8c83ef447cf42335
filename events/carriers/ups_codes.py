"""Meanings of UPS's status codes by (type, code): several of UPS's tables share a code.

`ups_codes.csv` is the small-parcel vocabulary. Manifest, pickup and movement share their codes: a
code with a single meaning under these types has it under each. Next comes the three-digit code
(`statusCode`, `descriptionCode`) that the JSON formats add, and last the type, where the type alone
is definite (M, MV, I, U); never for X (exception: anything from a refund to a fire) or D (a locker
is not the consignee).
"""

from functools import cache, lru_cache
from typing import Final

from events.carriers import kit

_BY_TYPE: Final = {
    "M": kit.Meaning(kit.Kind.SCAN, kit.Status.INFO_RECEIVED),
    "MV": kit.Meaning(kit.Kind.SCAN, kit.Status.CANCELLED),
    "I": kit.Meaning(kit.Kind.SCAN, kit.Status.IN_TRANSIT),
    "U": kit.Meaning(kit.Kind.INFO),
}
_PROGRESS: Final = frozenset({"M", "I", "P", "U"})

_DESTINATION_SCAN: Final = ("I", "DS")
_OUT_FOR_DELIVERY: Final = frozenset({"out for delivery", "out for delivery today"})
# Codes of Mail Innovations that mean something else for packages: its texts tell them apart.
_BY_TEXT: Final = {
    ("I", "PC"): ("package is awaiting customer pick", kit.Status.AVAILABLE_FOR_PICKUP),
    ("I", "SP"): ("return is out for delivery", kit.Status.RETURNING),
    ("X", "P6"): ("delivery attempted", kit.Status.DELIVERY_ATTEMPTED),
}
_AT_CUSTOMS: Final = frozenset({kit.Reason.CUSTOMS_HOLD, kit.Reason.CUSTOMS_DOCUMENTS})
# Three-digit codes for the end of a clearance: UPS prints the code of the hold for its end as well.
_CLEARED: Final = frozenset({"014", "084", "134"})


@lru_cache(maxsize=4096)
def meaning(
    status_type: str | None, code: str | None, text: str | None, status_code: str | None = None
) -> kit.Meaning:
    """Return the meaning of a status.

    `text` decides only for codes that UPS prints for two things.
    """
    key = (status_type or "", code or "")
    if (
        key == _DESTINATION_SCAN
        and text is not None
        and text.casefold().rstrip(".") in _OUT_FOR_DELIVERY
    ):
        return kit.Meaning(kit.Kind.SCAN, kit.Status.OUT_FOR_DELIVERY)
    words, status = _BY_TEXT.get(key, ("", None))
    if status is not None and (text or "").casefold().startswith(words):
        return kit.Meaning(kit.Kind.SCAN, status)
    known = _table().get(key) or (_shared().get(key[1]) if key[0] in _PROGRESS else None)
    by_status_code = _status_codes().get((status_code or "",))
    if known is not None and known.reason in _AT_CUSTOMS and status_code in _CLEARED:
        known = by_status_code
    return kit.finest(
        (code, known),
        (status_code, by_status_code),
        (key[0] if code else None, _BY_TYPE.get(key[0])),
    )


def reread(raw: kit.Raw) -> kit.Meaning | None:
    """Read a status with an unknown text."""
    if (raw.type, raw.code) == _DESTINATION_SCAN or (raw.type or "", raw.code or "") in _BY_TEXT:
        return None
    return meaning(raw.type, raw.code, None, raw.further[0] if raw.further else None)


@cache
def _table() -> dict[tuple[str, ...], kit.Meaning]:
    return kit.meanings("ups_codes.csv")


@cache
def _shared() -> dict[str, kit.Meaning]:
    """Return the codes that have a single meaning in all types of `_PROGRESS` with them."""
    found: dict[str, set[kit.Meaning]] = {}
    for (status_type, code), known in _table().items():
        if status_type in _PROGRESS:
            found.setdefault(code, set()).add(known)
    return {code: next(iter(several)) for code, several in found.items() if len(several) == 1}


@cache
def _status_codes() -> dict[tuple[str, ...], kit.Meaning]:
    return kit.meanings("ups_status_codes.csv")
