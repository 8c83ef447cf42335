"""The lives of invented parcels: which scans each will get, where and when.

Pure; chance comes in as a `Random`.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from random import Random
from typing import Final
from zoneinfo import ZoneInfo


class ParcelStep(StrEnum):
    """Meaning of a scan, before a carrier puts it into its own words."""

    LABEL = "label"
    PICKUP = "pickup"
    DEPART = "depart"
    ARRIVE = "arrive"
    DELAY = "delay"
    OUT = "out"
    ATTEMPT = "attempt"
    DELIVERED = "delivered"
    RETURN = "return"
    STRANGE = "strange"
    """A code without a mapping."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Town:
    """A place that exists, so that its zone can be known."""

    name: str
    region: str
    postal_code: str
    country: str
    zone: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ParcelScan:
    """A step at a place. `at` is in the zone of the place."""

    step: ParcelStep
    at: datetime
    town: Town


@dataclass(frozen=True, slots=True, kw_only=True)
class Parcel:
    """A number and all its future scans, in the order of its life."""

    carrier_id: str
    number: str
    scans: tuple[ParcelScan, ...]
    signer: str


AMERICAN: Final = (
    Town(
        name="Louisville",
        region="KY",
        postal_code="40213",
        country="US",
        zone="America/Kentucky/Louisville",
    ),
    Town(name="Columbus", region="OH", postal_code="43085", country="US", zone="America/New_York"),
    Town(name="Chicago", region="IL", postal_code="60632", country="US", zone="America/Chicago"),
    Town(name="Denver", region="CO", postal_code="80202", country="US", zone="America/Denver"),
    Town(name="Phoenix", region="AZ", postal_code="85004", country="US", zone="America/Phoenix"),
    Town(
        name="Oakland", region="CA", postal_code="94612", country="US", zone="America/Los_Angeles"
    ),
)
EUROPEAN: Final = (
    Town(name="Leipzig", region="", postal_code="04435", country="DE", zone="Europe/Berlin"),
    Town(name="Hamburg", region="", postal_code="20097", country="DE", zone="Europe/Berlin"),
    Town(name="Utrecht", region="", postal_code="3542", country="NL", zone="Europe/Amsterdam"),
    Town(name="Lyon", region="", postal_code="69007", country="FR", zone="Europe/Paris"),
    Town(name="Milan", region="", postal_code="20121", country="IT", zone="Europe/Rome"),
)
TOWNS: Final = {
    "ups": AMERICAN,
    "fedex": AMERICAN,
    "usps": AMERICAN,
    "easypost": AMERICAN,
    "dhl_unified": EUROPEAN,
    "dhl_express": EUROPEAN,
}
CARRIERS: Final = tuple(TOWNS)

SIGNERS: Final = ("A. Sample", "B. Example", "C. Invented", "FRONT DESK", "D. Nobody")

_TRAVEL: Final = (ParcelStep.LABEL, ParcelStep.PICKUP, ParcelStep.DEPART, ParcelStep.ARRIVE)
# Journeys of a parcel, with their frequency out of 32. The last journey is scanned at a depot after
# its delivery, which is impossible.
JOURNEYS: Final = (
    ((*_TRAVEL, ParcelStep.OUT, ParcelStep.DELIVERED), 10),
    ((*_TRAVEL, ParcelStep.DEPART, ParcelStep.ARRIVE, ParcelStep.OUT, ParcelStep.DELIVERED), 10),
    (
        (
            *_TRAVEL,
            ParcelStep.DELAY,
            ParcelStep.DEPART,
            ParcelStep.ARRIVE,
            ParcelStep.OUT,
            ParcelStep.DELIVERED,
        ),
        4,
    ),
    ((*_TRAVEL, ParcelStep.OUT, ParcelStep.ATTEMPT, ParcelStep.OUT, ParcelStep.DELIVERED), 4),
    ((*_TRAVEL, ParcelStep.OUT, ParcelStep.ATTEMPT, ParcelStep.RETURN), 2),
    ((*_TRAVEL, ParcelStep.STRANGE, ParcelStep.OUT, ParcelStep.DELIVERED), 1),
    ((*_TRAVEL, ParcelStep.OUT, ParcelStep.DELIVERED, ParcelStep.ARRIVE), 1),
)


def invent(rng: Random, carrier_id: str, now: datetime) -> Parcel:
    """Invent a parcel with its last scan a few minutes before `now`."""
    steps = rng.choices([steps for steps, _ in JOURNEYS], [weight for _, weight in JOURNEYS])[0]
    towns = rng.sample(TOWNS[carrier_id], k=3)
    at = now - timedelta(minutes=rng.randint(2, 20))
    scans: list[ParcelScan] = []
    for position, step in reversed(list(enumerate(steps))):
        town = towns[min(2, position * 3 // len(steps))]
        scans.append(
            ParcelScan(
                step=step, at=at.astimezone(ZoneInfo(town.zone)).replace(microsecond=0), town=town
            )
        )
        at -= timedelta(minutes=rng.randint(35, 600))
    return Parcel(
        carrier_id=carrier_id,
        number=invent_number(rng, carrier_id),
        scans=tuple(reversed(scans)),
        signer=rng.choice(SIGNERS),
    )


def invent_number(rng: Random, carrier_id: str) -> str:
    """Make up a number in the form of the carrier's."""

    def digits(count: int) -> str:
        return "".join(rng.choices("0123456789", k=count))

    match carrier_id:
        case "ups":
            return "1ZDEMO" + digits(12)
        case "fedex":
            return "77" + digits(10)
        case "usps":
            return "9400" + digits(18)
        case "dhl_unified":
            return "00340434" + digits(12)
        case "dhl_express":
            return "3" + digits(9)
        case _:
            return "EZ" + digits(10)
