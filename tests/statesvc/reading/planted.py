"""An invented carrier with a good stable version, and candidates with planted faults."""

from dataclasses import replace
from datetime import datetime
from typing import Final

from events.carriers.carrier import Carrier
from events.event import Normalized, Reading
from events.vocabulary import Kind, Status
from tests.world.worker_harness import CARRIER_ID, normalize

MISREAD: Final = "BAD"
"""The code that the candidate `2` reads as a delivery."""


def _misread(reading: Reading) -> Reading:
    if reading.raw.code == MISREAD:
        return replace(reading, kind=Kind.SCAN, status=Status.DELIVERED, reason=None)
    return reading


def wrong(body: bytes, received_at: datetime) -> Normalized:
    normalized = normalize(body, received_at)
    return replace(normalized, readings=tuple(map(_misread, normalized.readings)))


def broken(_body: bytes, _received_at: datetime) -> Normalized:
    raise KeyError("a value of the body")


def nosy(body: bytes, received_at: datetime) -> Normalized:
    normalized = normalize(body, received_at)
    return replace(
        normalized,
        readings=tuple(replace(reading, signed_by="Trillian") for reading in normalized.readings),
    )


def forgetful(body: bytes, received_at: datetime) -> Normalized:
    normalized = normalize(body, received_at)
    return replace(normalized, readings=normalized.readings[1:])


CARRIER: Final = Carrier(
    carrier_id=CARRIER_ID,
    name="Acme",
    normalizers={
        "1": normalize,
        "same": normalize,
        "2": wrong,
        "broken": broken,
        "nosy": nosy,
        "forgetful": forgetful,
    },
    stable="1",
    formats=("json",),
    authentication=(),
)
