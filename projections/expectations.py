"""Expectations: from a shipment's state and its carrier's rules to the next deadline. Pure.

Time is an argument. A missed deadline is observed once for its cause: the last scan before the
silence, or the promised day. A later event removes the cause, and the flag with it, because no
other state of the shipment has the same cause; if the cause returns (a correction retracts the
event that removed it), the flag returns and is not observed again. So flags follow from the log
alone, whatever the rules are today.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from events.vocabulary import Status
from projections.state import ShipmentState


class Expectation(StrEnum):
    """An expectation that was not met."""

    STALLED = "stalled"
    """No scan within the hours that its status allows."""
    NOT_PICKED_UP = "not_picked_up"
    """A label was made, and the carrier never had the parcel."""
    OVERDUE = "overdue"
    """The promised day is over and it is not delivered."""
    DELIVERY_MISSED = "delivery_missed"
    """Out for delivery, and not delivered when that day ended where it was."""
    PICKUP_EXPIRING = "pickup_expiring"
    """It waits to be picked up, and will soon be sent back."""
    NEVER_HEARD = "never_heard"
    """An awaited number without any event: no state has it, and no rule is about it."""


# The statuses in which scans are expected: before, there is `not_picked_up`; where it waits for its
# receiver, `pickup_expiring`.
STALLABLE: Final = frozenset(
    {
        Status.PICKED_UP,
        Status.IN_TRANSIT,
        Status.EXCEPTION,
        Status.OUT_FOR_DELIVERY,
        Status.DELIVERY_ATTEMPTED,
        Status.RETURNING,
    }
)
_BEFORE_PICKUP: Final = frozenset({Status.UNKNOWN, Status.INFO_RECEIVED})
# A deadline that had passed longer ago than this when its shipment's last event came is history
# being loaded, and no news.
HISTORY: Final = timedelta(days=30)
# Below the sequence of the first observation of a shipment: negative, so that it never takes the
# place of a change of status.
FIRST_SEQUENCE: Final = -1_000_000
_YEARS: Final = range(1970, 9000)
_DAY: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectationRules:
    """Hours after which something is observed; None: never.

    `stalled`: by status, since the last scan.

    `not_picked_up`: since the label; `overdue`: since the end of the promised day;
    `delivery_missed`: since the midnight after the scan; `pickup_expiring`: since it was available.
    `revision`: of the rules that say so, 0: the defaults.
    """

    stalled: Mapping[Status, int | None] = field(
        default_factory=lambda: MappingProxyType(
            {
                Status.PICKED_UP: 72,
                Status.IN_TRANSIT: 120,
                Status.EXCEPTION: 72,
                Status.OUT_FOR_DELIVERY: 48,
                Status.DELIVERY_ATTEMPTED: 72,
                Status.RETURNING: 240,
            }
        )
    )
    not_picked_up: int | None = 120
    overdue: int | None = 0
    delivery_missed: int | None = 0
    pickup_expiring: int | None = 120
    revision: int = 0

    def changed(self, document: Mapping[str, Any], *, revision: int) -> "ExpectationRules":
        """Return the rules with the members of `document` replaced."""
        names = {each.name for each in fields(self)} - {"stalled", "revision"}
        stalled = {
            Status(status): hours for status, hours in (document.get("stalled") or {}).items()
        }
        changes = {name: document[name] for name in names if name in document}
        current = {name: getattr(self, name) for name in names}
        return ExpectationRules(
            stalled=MappingProxyType({**self.stalled, **stalled}),
            revision=revision,
            **(current | changes),
        )

    def hours(self) -> dict[str, Any]:
        plain = {
            each.name: getattr(self, each.name)
            for each in fields(self)
            if each.name not in {"stalled", "revision"}
        }
        return {"stalled": {status.value: hours for status, hours in self.stalled.items()}, **plain}


DEFAULT_RULES: Final = ExpectationRules()


class Deadline(NamedTuple):
    """A time at which an expectation is observed as missed unless it is met before.

    `cause`: the fact that must change before it is observed again.
    """

    due_at: datetime
    kind: Expectation
    cause: str
    hours: int


def next_deadline(
    state: ShipmentState, rules: ExpectationRules, *, recorded_at: datetime
) -> Deadline | None:
    """Return the earliest deadline that was not observed yet.

    `recorded_at`: of the shipment's last event.
    """
    oldest = recorded_at - HISTORY
    awaited = [
        one
        for one in deadlines(state, rules)
        if (one.kind, one.cause) not in state.observed and one.due_at >= oldest
    ]
    return min(awaited, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """Deadlines of a shipment to observe now.

    `state`: with them; `sequences`: the position of each among the shipment's observations.
    """

    deadlines: list[Deadline]
    sequences: list[int]
    state: ShipmentState


def passed(
    state: ShipmentState, rules: ExpectationRules, *, recorded_at: datetime, now: datetime
) -> Passed:
    """Return the deadlines that have passed and were not observed yet, in the order in which they
    passed.
    """
    oldest = recorded_at - HISTORY
    found = sorted(
        one
        for one in deadlines(state, rules)
        if oldest <= one.due_at <= now and (one.kind, one.cause) not in state.observed
    )
    before = len(state.observed)
    observed = tuple(sorted([*state.observed, *((one.kind.value, one.cause) for one in found)]))
    sequences = [FIRST_SEQUENCE + before + place for place in range(1, len(found) + 1)]
    return Passed(
        deadlines=found,
        sequences=sequences,
        state=replace(state, observed=observed) if found else state,
    )


def deadlines(state: ShipmentState, rules: ExpectationRules) -> Iterator[Deadline]:
    """Yield all deadlines of a state, observed or not."""
    for kind, (cause, since) in causes(state).items():
        hours = (
            rules.stalled.get(state.status) if kind is Expectation.STALLED else _HOURS[kind](rules)
        )
        if hours is not None and since.year in _YEARS:
            yield Deadline((since + timedelta(hours=hours)).astimezone(UTC), kind, cause, hours)


def flagged(state: ShipmentState) -> list[str]:
    """Return the observed expectations that still have their cause."""
    if not state.observed:
        return []
    return [
        kind.value for kind, (cause, _) in causes(state).items() if (kind, cause) in state.observed
    ]


def causes(state: ShipmentState) -> dict[Expectation, tuple[str, datetime]]:
    """Return the cause of each expectation of a shipment, and from when its hours count."""
    found: dict[Expectation, tuple[str, datetime]] = {}
    scanned, status = state.scanned, state.status
    if state.terminal or (scanned is not None and scanned.at.year not in _YEARS):
        return found
    if scanned is not None:
        if status in STALLABLE:
            found[Expectation.STALLED] = (scanned.event_id, scanned.at)
        since = state.status_since or scanned.at
        if status in _BEFORE_PICKUP:
            found[Expectation.NOT_PICKED_UP] = ("label", since)
        elif status is Status.AVAILABLE_FOR_PICKUP:
            found[Expectation.PICKUP_EXPIRING] = (since.isoformat(), since)
        elif status is Status.OUT_FOR_DELIVERY:
            found[Expectation.DELIVERY_MISSED] = (
                scanned.at.date().isoformat(),
                _end_of_day(scanned.at.date(), scanned.at),
            )
    if status is not Status.RETURNING and (ends := promised_until(state)) is not None:
        found[Expectation.OVERDUE] = (state.promised_delivery or "", ends)
    return found


def promised_until(state: ShipmentState) -> datetime | None:
    """Return the end of the promised day, in the zone of the delivery or of the last scan.

    None without a promised date.
    """
    where = state.delivered_at or (state.scanned.at if state.scanned else state.last_event_at)
    day = promised_day(state)
    return None if where is None or day is None else _end_of_day(day, where)


def promised_day(state: ShipmentState) -> date | None:
    """Return the day of the first estimate, as the carrier printed it: a date, or a time of RFC
    3339, of which the date counts.
    """
    return _printed_day(state.promised_delivery or "")


@lru_cache(maxsize=1024)
def _printed_day(printed: str) -> date | None:
    try:
        day = date.fromisoformat(printed[:10])
    except ValueError:
        return None
    return day if day.year in _YEARS else None


def _end_of_day(day: date, where: datetime) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=where.tzinfo) + _DAY


_HOURS: Final[Mapping[Expectation, Callable[[ExpectationRules], int | None]]] = {
    Expectation.NOT_PICKED_UP: lambda rules: rules.not_picked_up,
    Expectation.OVERDUE: lambda rules: rules.overdue,
    Expectation.DELIVERY_MISSED: lambda rules: rules.delivery_missed,
    Expectation.PICKUP_EXPIRING: lambda rules: rules.pickup_expiring,
}
