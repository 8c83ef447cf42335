"""A FedEx scan, from any format.

`fedex_codes.csv` is the section `Movement` of FedEx's vocabulary (other sections use the same codes
otherwise); a row with an exception code goes before the row of the event type alone. An unknown
event type is never guessed from the rollup next to it.
"""

from datetime import datetime
from functools import cache
from typing import Final

from events.carriers import kit

CLOCK: Final = kit.Clock(formats=kit.ISO, default_zone="America/Chicago", midnight_is_day=True)

UNREADABLE_TIME: Final = "a time in no known format"
EMPTY: Final = "neither code, text nor time"


@kit.value(frozen=True, slots=True, kw_only=True)
class FedexScan:
    """The fields of a scan as printed.

    `unique_id` distinguishes the shipments that share a recycled number.
    """

    number: str | None
    unique_id: str | None
    service: str | None
    code: str | None
    exception: str | None
    text: str | None
    exception_text: str | None
    time: str | None
    place: kit.EventPlace


def read_scan(scan: FedexScan, received_at: datetime) -> kit.Reading | str:
    if scan.code is None and scan.text is None and scan.time is None:
        return EMPTY
    time = CLOCK.read(scan.time, scan.place, received_at=received_at)
    if time is None:
        return UNREADABLE_TIME
    raw = kit.Raw(code=scan.code, reason=scan.exception)
    kind, status, reason, _ = meaning(raw)
    return kit.Reading(
        tracking_number=scan.number,
        # FedEx uses numbers again: without its unique id two parcels would be one shipment
        discriminator=scan.unique_id or "",
        kind=kind,
        raw=raw,
        time=time,
        place=scan.place,
        service=scan.service,
        status=status,
        reason=reason,
        description=", ".join(part for part in (scan.text, scan.exception_text) if part is not None)
        or None,
    )


def meaning(raw: kit.Raw) -> kit.Meaning:
    """Read an event type with its exception code."""
    key = (raw.code or "").upper()
    # a row with the exception goes before that of the event type alone
    known = _table().get((key, raw.reason.upper())) if raw.reason else None
    return known or _table().get((key, ""), kit.UNMAPPED)


@cache
def _table() -> dict[tuple[str, ...], kit.Meaning]:
    return kit.meanings("fedex_codes.csv")
