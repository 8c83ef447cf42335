"""Observations against a model, on a real database whose clock stands still unless it is moved.

Scans come in time, late or not at all, are retracted and read otherwise; estimates change; rules
change. Whatever comes, each expectation is observed once for its cause, flags are those whose cause
holds, and a rebuild says the same.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from typing import Any
from uuid import UUID

import hypothesis.strategies as st
import pytest
from hypothesis.stateful import initialize, rule

from events.event import Reading
from events.identity.ids import identify, shipment_id
from events.vocabulary import Kind, Status
from projections.fact import Fact
from projections.fold import fold
from projections.row import is_observation, rebuilt_row
from statesvc.addons.expectations.observe import observe
from statesvc.addons.expectations.rule_changes import state_rules
from statesvc.addons.expectations.watcher import rearm
from statesvc.log.json_compression import decompress_json
from statesvc.shipments.expectation_rules import read_rules, rule_scope
from tests.addons.expectations.database_machine import EXAMPLE, DatabaseMachine, check_machine
from tests.projections.stated_fact import fact_of
from tests.world.database import Database
from tests.world.log_builder import LogBuilder, log_builder, scan

_HISTORY = (
    b"(SELECT e.canonical FROM statesvc.event e WHERE e.shipment_id = %(shipment_id)s ORDER BY"
    b" e.version) UNION ALL SELECT v.canonical FROM statesvc.observation v WHERE v.shipment_id ="
    b" %(shipment_id)s"
)
_ROW = b"SELECT flags, due_at, state FROM statesvc.shipment WHERE shipment_id = %(shipment_id)s"
NEW_YORK, TOKYO = timezone(timedelta(hours=-5)), timezone(timedelta(hours=9))
STALLS = {
    "picked_up": 72,
    "in_transit": 120,
    "exception": 72,
    "out_for_delivery": 48,
    "delivery_attempted": 72,
    "returning": 240,
}
Hours = dict[str, int | None]
SERVICES = ["UPS Ground", "UPS SurePost"]
OTHERS = {"not_picked_up": 120, "overdue": 0, "delivery_missed": 0, "pickup_expiring": 120}
DAYS_OF_NEWS = 30
STATUSES = [
    Status.INFO_RECEIVED,
    Status.PICKED_UP,
    Status.IN_TRANSIT,
    Status.OUT_FOR_DELIVERY,
    Status.AVAILABLE_FOR_PICKUP,
    Status.EXCEPTION,
    Status.RETURNING,
    Status.DELIVERED,
    None,
]
"""None: a code that nobody knows yet."""


@dataclass
class Parcel:
    """A parcel, what was said and what was observed of it. `recorded_at`: of the last of it."""

    number: str
    recorded_at: datetime
    said: list[Reading] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)
    retracted: set[str] = field(default_factory=set)
    observed: dict[tuple[str, str], datetime] = field(default_factory=dict)

    def causes(self) -> Iterator[tuple[str, str, datetime]]:
        """Yield kind, cause, and from when the hours count.

        The life cycle is taken from the fold; the rest is said in another way.
        """
        state = fold(self.facts)
        status = state.status.value
        scans = [
            each
            for each in self.said
            if each.kind is not Kind.CORRECTION and each.native_id not in self.retracted
        ]
        if state.terminal or not self.said:
            return
        promised = [each for each in self.said if each.estimated_delivery is not None]
        if promised and status != "returning":
            day = min(promised, key=lambda each: each.time.instant).estimated_delivery or ""
            there = (
                max(scans, key=lambda each: each.time.instant).time.instant
                if scans
                else state.last_event_at
            )
            assert there is not None
            yield "overdue", day, _midnight_after(datetime.fromisoformat(day), there)
        if not scans:
            return
        last = max(scans, key=lambda each: each.time.instant)
        since = state.status_since or last.time.instant
        if status in STALLS:
            yield "stalled", last.native_id or "", last.time.instant
        if status in {"unknown", "info_received"}:
            yield "not_picked_up", "label", since
        if status == "available_for_pickup":
            yield "pickup_expiring", since.isoformat(), since
        if status == "out_for_delivery":
            yield (
                "delivery_missed",
                f"{last.time.instant:%Y-%m-%d}",
                _midnight_after(last.time.instant, last.time.instant),
            )

    def service(self) -> str:
        """Return the service as the newest statement that names one has it; as it is compared."""
        named = [each for each in self.said if each.service is not None]
        return (
            (max(named, key=lambda each: each.time.instant).service or "").lower() if named else ""
        )

    def pass_by(self, now: datetime, hours: Hours) -> None:
        """Observe what is observed at a pass."""
        state = fold(self.facts)
        for kind, cause, since in self.causes():
            after = hours[f"stalled.{state.status.value}" if kind == "stalled" else kind]
            if after is None or (kind, cause) in self.observed:
                continue
            due = since + timedelta(hours=after)
            if self.recorded_at - timedelta(days=DAYS_OF_NEWS) <= due <= now:
                self.observed[kind, cause] = due

    def flags(self) -> list[str]:
        raised = [kind for kind, cause, _ in self.causes() if (kind, cause) in self.observed]
        return sorted([*fold(self.facts).flags, *raised])


def _midnight_after(day: datetime, where: datetime) -> datetime:
    return day.replace(hour=0, minute=0, tzinfo=where.tzinfo) + timedelta(days=1)


class Watched(DatabaseMachine):
    log: LogBuilder
    example: int

    @initialize()
    def start(self) -> None:
        self.example = next(EXAMPLE)
        self.parcels: list[Parcel] = []
        self.said = 0
        self.stated: dict[tuple[str, str], Hours] = {}
        for scope in (("*", ""), ("ups", ""), *(("ups", service) for service in SERVICES)):
            self.state({}, scope)

    def hours_of(self, service: str) -> Hours:
        """Return the most specific hours."""
        found: Hours = {
            **{f"stalled.{status}": hours for status, hours in STALLS.items()},
            **OTHERS,
        }
        for scope in (("*", ""), ("ups", ""), *([("ups", service)] if service else [])):
            found |= self.stated.get(scope, {})
        return found

    @rule(
        place=st.integers(0, 3),
        status=st.sampled_from(STATUSES),
        hours_ago=st.one_of(st.integers(0, 6), st.integers(0, 200), st.integers(600, 900)),
        eta=st.one_of(st.none(), st.integers(-3, 6)),
        where=st.sampled_from([NEW_YORK, TOKYO]),
        service=st.sampled_from([None, None, *SERVICES]),
    )
    def scan(
        self,
        *,
        place: int,
        status: Status | None,
        hours_ago: int,
        eta: int | None,
        where: timezone,
        service: str | None = None,
    ) -> None:
        parcel, now = self.parcel(place), self.move_clock(0)
        at = (now - timedelta(hours=hours_ago, minutes=self.said)).astimezone(where)
        day = None if eta is None else f"{at + timedelta(days=eta):%Y-%m-%d}"
        kind = Kind.SCAN if status else Kind.UNMAPPED
        self.say(parcel, status, at, kind=kind, estimated_delivery=day, service=service)

    @rule(
        place=st.integers(0, 3),
        which=st.integers(0, 20),
        status=st.sampled_from([None, None, Status.IN_TRANSIT, Status.DELIVERED]),
    )
    def correct(self, place: int, which: int, status: Status | None) -> None:
        """Correct a scan: it never happened, or meant something else."""
        parcel = self.parcel(place)
        scans = [
            each.native_id or ""
            for each in parcel.said
            if each.kind is Kind.SCAN and each.native_id not in parcel.retracted
        ]
        if scans:
            corrected = scans[which % len(scans)]
            if status is None:
                parcel.retracted.add(corrected)
            self.say(
                parcel,
                status,
                self.move_clock(0).astimezone(NEW_YORK),
                kind=Kind.CORRECTION,
                corrects=corrected,
            )
            # what is corrected once is not chosen again: the latest of several holds, which the
            # fold's own tests are about
            parcel.said = [
                replace(each, kind=Kind.UNMAPPED) if each.native_id == corrected else each
                for each in parcel.said
            ]

    @rule(hours=st.sampled_from([1, 13, 30, 60, 130, 250]))
    def time_passes(self, hours: int) -> None:
        self.move_clock(hours * 3600)

    @rule()
    def look(self) -> None:
        """Check that what was observed is what the model says, and the flags are."""
        now = self.move_clock(0)
        while self.run(observe(self.log.connection, worker="watcher")).is_full:
            pass
        for parcel in self.parcels:
            parcel.pass_by(now, self.hours_of(parcel.service()))
        self.compare()

    @rule(
        rules=st.fixed_dictionaries(
            {},
            optional={
                "stalled": st.dictionaries(
                    st.sampled_from(sorted(STALLS)), st.one_of(st.none(), st.integers(1, 200))
                ),
                **{name: st.one_of(st.none(), st.integers(1, 200)) for name in OTHERS},
            },
        ),
        scope=st.sampled_from(
            [
                ("*", ""),
                ("ups", ""),
                *(("ups", service) for service in SERVICES),
                ("fedex", ""),
                ("fedex", SERVICES[0]),
            ]
        ),
    )
    def state(self, rules: dict[str, Any], scope: tuple[str, str] = ("ups", "")) -> None:
        """State other rules of all carriers, of one, or of one of its services; shipments that wait
        follow before anything else happens.
        """
        carrier_id, service = scope
        self.stated[carrier_id, service.lower()] = {
            **{f"stalled.{status}": hours for status, hours in rules.get("stalled", {}).items()},
            **{name: hours for name, hours in rules.items() if name != "stalled"},
        }

        async def change() -> None:
            await state_rules(
                self.log.connection,
                rule_scope(carrier_id, service or None),
                rules,
                why="a test",
                actor="test",
            )

        self.run(change())
        self.move_clock(61)
        while self.run(rearm(self.log.connection)):
            pass

    def compare(self) -> None:
        for parcel in self.parcels:
            found = self.run(self.seen(shipment_id("ups", parcel.number, "")))
            assert dict(found.observed) == parcel.observed, parcel.number
            assert len(found.observed) == len(parcel.observed), "once for each cause"
            assert found.stored == found.rebuilt, parcel.number
            assert sorted(found.stored[0] if found.stored else []) == parcel.flags(), parcel.number

    def parcel(self, place: int) -> Parcel:
        if place >= len(self.parcels):
            self.parcels.append(Parcel(f"1Z{self.example}P{len(self.parcels)}", self.move_clock(0)))
            return self.parcels[-1]
        return self.parcels[place]

    def say(self, parcel: Parcel, status: Status | None, at: datetime, **more: Any) -> None:
        self.said += 1
        reading = scan(parcel.number, 0, status, native_id=f"{parcel.number}-{self.said}", **more)
        reading = replace(reading, time=replace(reading.time, instant=at))
        self.run(self.log.append(reading))
        event = identify(reading, carrier_id="ups", digest=self.log.keyring.carrier_digest("ups"))
        parcel.said.append(reading)
        parcel.facts.append(fact_of(event, signer_digest=None))
        parcel.recorded_at = self.move_clock(0)

    async def seen(self, wanted: UUID) -> "Seen":
        """Return what is stored of a shipment, and what a rebuild makes of its entries."""
        connection = self.log.connection
        cursor = await connection.execute(_HISTORY, {"shipment_id": wanted})
        history = [decompress_json(canonical) for (canonical,) in await cursor.fetchall()]
        if not history:
            return Seen([], None, None)
        observed = [json.loads(canonical) for canonical in history if is_observation(canonical)]
        ((flags, due_at, state),) = await (
            await connection.execute(_ROW, {"shipment_id": wanted})
        ).fetchall()
        row = rebuilt_row(wanted, history, (await read_rules(connection)).of)
        return Seen(
            [
                ((each["kind"], each["details"]["cause"]), datetime.fromisoformat(each["since"]))
                for each in observed
            ],
            (flags, due_at, decompress_json(state)),
            (row.flags, row.due_at, row.state),
        )


@dataclass(frozen=True)
class Seen:
    observed: list[tuple[tuple[str, str], datetime]]
    stored: Any
    rebuilt: Any


@pytest.mark.usefixtures("own_processes")
async def test_what_is_observed_keeps_to_its_model_and_a_rebuild_says_the_same(
    database: Database,
) -> None:
    async with log_builder(database) as log:
        await check_machine(Watched, database, examples=6, log=log)
