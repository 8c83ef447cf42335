"""One FedEx scan, whatever format printed it, and what a shipment's scans say together.

`fedex_codes.csv` is the section `Movement` of FedEx's vocabulary (other sections use the same letters otherwise); a row with an
exception code goes before the row of the event type alone. An unknown event type is never guessed from the rollup beside it.
"""

import csv
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple

from events.event import Place, Raw, Reading
from events.reading.formats import ISO
from events.reading.text import signer
from events.reading.times import MIDNIGHT, Clock
from events.vocabulary import Kind, Reason, Status

CLOCK: Final = Clock(formats=ISO, midnight_is_day=True)

UNREADABLE_TIME: Final = "a time in no known format"
EMPTY: Final = "neither code, text nor time"


class Meaning(NamedTuple):
    """Our reading of a code."""

    kind: Kind
    status: Status | None
    reason: Reason | None = None


UNMAPPED: Final = Meaning(Kind.UNMAPPED, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """The fields of a scan as printed. `unique_id` tells apart the shipments that share a recycled number."""

    number: str | None
    unique_id: str | None
    code: str | None
    exception: str | None
    text: str | None
    exception_text: str | None
    time: str | None
    place: Place


def read_scan(scan: Scan, received_at: datetime) -> Reading | str:
    """The reading of a scan, or why it is none."""
    if scan.code is None and scan.text is None and scan.time is None:
        return EMPTY
    time = CLOCK.read(scan.time, scan.place, received_at=received_at)
    if time is None:
        return UNREADABLE_TIME
    kind, status, reason = meaning(scan.code, scan.exception)
    return Reading(
        tracking_number=scan.number,
        discriminator=scan.unique_id or "",
        kind=kind,
        raw=Raw(code=scan.code, reason=scan.exception),
        time=time,
        place=scan.place,
        status=status,
        reason=reason,
        description=", ".join(part for part in (scan.text, scan.exception_text) if part is not None) or None,
    )


def meaning(code: str | None, exception: str | None) -> Meaning:
    """The meaning of an event type with its exception code."""
    key = (code or "").upper()
    known = _table().get((key, exception.upper())) if exception else None
    return known or _table().get((key, ""), UNMAPPED)


def with_shipment_facts(readings: Sequence[Reading], *, received_by: str | None, estimate: str | None) -> list[Reading]:
    """The readings of one shipment with what FedEx prints beside its scans.

    Who received it goes on the last delivered scan; while it is not delivered, when it is expected goes on the newest scan.
    """
    found = list(readings)
    scans = [index for index, reading in enumerate(found) if reading.kind is Kind.SCAN]
    delivered = [index for index in scans if found[index].status is Status.DELIVERED]
    name = signer(received_by)
    if delivered and name is not None:
        last = max(delivered, key=lambda index: found[index].time.instant)
        found[last] = replace(found[last], signed_by=name)
    if scans and not delivered and estimate is not None and (expected := _expected(estimate)) is not None:
        newest = max(scans, key=lambda index: found[index].time.instant)
        found[newest] = replace(found[newest], estimated_delivery=expected)
    return found


def _expected(printed: str) -> str | None:
    """A time as printed, or only its date where it is a midnight."""
    wall = ISO.read(printed)
    if wall is None or wall.is_sentinel:
        return None
    return wall.local.date().isoformat() if wall.local.time() == MIDNIGHT else printed


@cache
def _table() -> dict[tuple[str, str], Meaning]:
    rows = csv.DictReader(files("events.carriers").joinpath("fedex_codes.csv").read_text("utf-8").splitlines())
    return {
        (row["code"], row["exception"]): Meaning(
            Kind(row["kind"]), Status(row["status"]) if row["status"] else None, Reason(row["reason"]) if row["reason"] else None
        )
        for row in rows
    }
