"""A push of a sample carrier with a given status.

Pure: for tests that need a parcel in a state.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random
from typing import Final
from zoneinfo import ZoneInfo

from events.carriers import CARRIERS
from statesvc.addons.demo.dialects import DIALECTS
from statesvc.addons.demo.parcels import (
    SIGNERS,
    TOWNS,
    Parcel,
    ParcelScan,
    ParcelStep,
    invent_number,
)

SAMPLE_CARRIERS: Final = tuple(DIALECTS)


class NoSampleError(ValueError):
    """No sample carrier of this name has this status. The text lists the valid ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplePush:
    """A carrier's request: its body and the number in it."""

    carrier_id: str
    number: str
    content_type: str
    body: bytes = field(repr=False)


def sample_push(
    carrier_id: str, status: str, *, at: datetime, number: str | None = None
) -> SamplePush:
    """Write a push that the carrier's own normalizer reads as a single scan of `status`.

    `number`: random by default.
    """
    if carrier_id not in DIALECTS:
        raise NoSampleError(
            f"there are no samples of {carrier_id!r}; there are of {', '.join(SAMPLE_CARRIERS)}"
        )
    number = number or invent_number(Random(), carrier_id)  # noqa: S311 - a number of a test
    said: dict[str, None] = {}
    for found, push in _pushes(carrier_id, number, at):
        if found == status:
            return push
        said[found] = None
    raise NoSampleError(f"no sample of {carrier_id} says {status!r}; they say {', '.join(said)}")


def _pushes(carrier_id: str, number: str, at: datetime) -> Iterator[tuple[str, SamplePush]]:
    """Yield each step with the status as which it is read."""
    content_type, write = DIALECTS[carrier_id]
    carrier, town = CARRIERS[carrier_id], TOWNS[carrier_id][0]
    read = carrier.normalizers[carrier.stable]
    for step in ParcelStep:
        scan = ParcelScan(
            step=step, at=at.astimezone(ZoneInfo(town.zone)).replace(microsecond=0), town=town
        )
        body = write(
            Parcel(carrier_id=carrier_id, number=number, scans=(scan,), signer=SIGNERS[0]), [scan]
        )
        status = next(
            (
                reading.status
                for reading in read(body, at.astimezone(UTC)).readings
                if reading.status
            ),
            None,
        )
        if status is not None:
            yield (
                status.value,
                SamplePush(
                    carrier_id=carrier_id, number=number, content_type=content_type, body=body
                ),
            )
