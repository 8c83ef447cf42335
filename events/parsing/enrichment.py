"""Values printed once per shipment that belong to a scan: the signer, the estimate.

The signer belongs to the delivery, the estimate to the newest scan. The scan depends on the scans
alone, never on their order in the message, so that the next snapshot finds the same scan.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from events.event import Reading
from events.parsing.formats import TimeFormats, Wall
from events.vocabulary import RANK, Kind, Status, TzSource

_OVER: Final = frozenset(
    {Status.DELIVERED, Status.RETURNED, Status.CANCELLED, Status.LOST, Status.DESTROYED}
)


def with_signer(readings: Sequence[Reading], signer: str | None) -> list[Reading]:
    """Return the readings of a shipment with `signer` on the newest delivery without its own."""
    at = (
        None
        if signer is None
        else _newest(readings, lambda reading: reading.status is Status.DELIVERED)
    )
    if at is None or readings[at].signed_by is not None:
        return list(readings)
    return _changed(readings, at, replace(readings[at], signed_by=signer))


def with_estimate(
    readings: Sequence[Reading], estimate: str | None, *, stamp: str = ""
) -> list[Reading]:
    """Return the readings of a shipment with `estimate` on the newest.

    Unchanged where that scan ends the shipment.
    """
    at = None if estimate is None else _newest(readings, lambda _: True)
    if at is None or readings[at].status in _OVER:
        return list(readings)
    return _changed(readings, at, replace(readings[at], estimated_delivery=estimate, stamp=stamp))


def estimate(printed: str | None, formats: TimeFormats) -> str | None:
    """Return a printed date of delivery as ISO 8601: the date alone where no time (or midnight) is
    printed. Sentinels and others: None.
    """
    wall: Wall | None = formats.read(printed) if printed else None
    if wall is None or wall.is_sentinel:
        return None
    if wall.local.time() == datetime.min.time():
        return wall.local.date().isoformat()
    return wall.local.isoformat() + (wall.zone or "")


def _newest(readings: Sequence[Reading], eligible: Callable[[Reading], bool]) -> int | None:
    """Return the index of the newest eligible reading; a scan that prints no time of its own is
    older than all that do.
    """
    found = [
        at for at, reading in enumerate(readings) if reading.kind is Kind.SCAN and eligible(reading)
    ]
    return max(found, key=lambda at: _age(readings[at]), default=None)


def _age(reading: Reading) -> tuple[bool, datetime, int, str]:
    raw = reading.raw
    timed = reading.time.tz_source is not TzSource.RECEIVED
    return (
        timed,
        reading.time.instant,
        RANK[reading.status],
        "/".join(part or "" for part in (raw.type, raw.code, raw.reason)),
    )


def _changed(readings: Sequence[Reading], at: int, reading: Reading) -> list[Reading]:
    return [*readings[:at], reading, *readings[at + 1 :]]
