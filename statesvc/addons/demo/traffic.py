"""The order in which sample carriers push, with everything that real ones do. Pure.

They retry a body that was not acknowledged fast enough; scans overtake each other, come after the
delivery or contradict it; codes come that no mapping knows, and bodies that were cut off.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from random import Random
from typing import Final

from statesvc.addons.demo.dialects import DIALECTS
from statesvc.addons.demo.parcels import CARRIERS, Parcel, ParcelScan, ParcelStep, invent

PARCELS_ALIVE: Final = 40


class Behaviour(StrEnum):
    PLAIN = "plain"
    DUPLICATE = "duplicate"
    OVERTAKING = "overtaking"
    LATE = "late"
    UNKNOWN_CODE = "unknown code"
    CONTRADICTING = "contradicting"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Push:
    carrier_id: str
    content_type: str
    body: bytes
    behaviour: Behaviour


@dataclass(slots=True, kw_only=True)
class _Life:
    """A parcel and the order in which its scans will be pushed: not always the order
    in which they happened.
    """

    parcel: Parcel
    upcoming: list[tuple[ParcelScan, Behaviour]]
    pushed: list[ParcelScan] = field(default_factory=list)


def pushes(rng: Random, clock: Callable[[], datetime]) -> Iterator[Push]:
    """Yield endless traffic of all sample carriers."""
    alive: list[_Life] = []
    while True:
        while len(alive) < PARCELS_ALIVE:
            alive.append(_begin(rng, clock()))
        life = rng.choice(alive)
        scan, behaviour = life.upcoming.pop(0)
        if not life.upcoming:
            alive.remove(life)
        push = _push(life, scan, behaviour)
        if rng.random() < 0.02:
            cut_off = push.body[: rng.randint(1, len(push.body) - 1)]
            yield replace(push, body=cut_off, behaviour=Behaviour.UNREADABLE)
        yield push
        while rng.random() < 0.2:
            yield replace(push, behaviour=Behaviour.DUPLICATE)


def _begin(rng: Random, now: datetime) -> _Life:
    parcel = invent(rng, rng.choice(CARRIERS), now)
    upcoming = [(scan, _behaviour(parcel, place)) for place, scan in enumerate(parcel.scans)]
    chance = rng.random()
    middle = rng.randrange(1, len(upcoming) - 1)
    if chance < 0.15:
        upcoming[middle], upcoming[middle + 1] = (
            (upcoming[middle + 1][0], Behaviour.OVERTAKING),
            upcoming[middle],
        )
    elif chance < 0.25:
        upcoming.append((upcoming.pop(middle)[0], Behaviour.LATE))
    return _Life(parcel=parcel, upcoming=upcoming)


def _behaviour(parcel: Parcel, place: int) -> Behaviour:
    if parcel.scans[place].step is ParcelStep.STRANGE:
        return Behaviour.UNKNOWN_CODE
    return (
        Behaviour.CONTRADICTING
        if place and parcel.scans[place - 1].step is ParcelStep.DELIVERED
        else Behaviour.PLAIN
    )


def _push(life: _Life, scan: ParcelScan, behaviour: Behaviour) -> Push:
    life.pushed.append(scan)
    content_type, write = DIALECTS[life.parcel.carrier_id]
    seen = (
        [scan] if life.parcel.carrier_id == "ups" else sorted(life.pushed, key=lambda each: each.at)
    )
    return Push(
        carrier_id=life.parcel.carrier_id,
        content_type=content_type,
        body=write(life.parcel, seen),
        behaviour=behaviour,
    )
