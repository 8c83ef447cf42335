"""Awaited numbers against a model, on a real database whose clock stands still unless it is moved.

Numbers are awaited, given up, heard of by their carrier or by an aggregator, erased; their
carrier is held. Whatever comes, the model says which are raised, of which deadline and when,
what each number answers now, and what it answered at any instant before.
"""

import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import hypothesis.strategies as st
import pytest
from hypothesis.stateful import initialize, invariant, rule

from events.vocabulary import Status
from statesvc.addons.expectations.awaited_numbers import await_number, stop_awaiting
from statesvc.addons.expectations.watcher import observe_never_heard
from statesvc.log.json_compression import decompress_json
from statesvc.privacy.erasure import Erasure, erase
from statesvc.shipments.awaited import SHOWN_DAYS
from statesvc.shipments.references import AttachedTo, NumberErasedError
from tests.addons.expectations.database_machine import EXAMPLE, DatabaseMachine, check_machine
from tests.statesvc.worker.log_check import check_log
from tests.world.api import Api, _scan
from tests.world.database import Database
from tests.world.log_builder import LogBuilder

NUMBERS = 3
PLACES = st.integers(0, NUMBERS - 1)
PUT_OFF = (timedelta(minutes=30), timedelta(minutes=90))
HOLD = """
INSERT INTO statesvc.rollout (carrier_id, hold, changed_at, changed_by) VALUES ('*', %s, now(), 't')
ON CONFLICT (carrier_id) DO UPDATE SET hold = excluded.hold
"""
OBSERVED = "SELECT canonical FROM statesvc.observation ORDER BY batch_id, ordinal"


class Shown(NamedTuple):
    """What a number answers; None: nothing."""

    status: str
    has_events: bool
    flags: list[str]


@dataclass
class Number:
    """A number in the model. `looked_at`: between which instants it is looked at next."""

    number: str
    hours: int | None = None
    since: datetime | None = None
    looked_at: tuple[datetime, datetime] | None = None
    observed_at: datetime | None = None
    has_events: bool = False
    is_heard: bool = False
    is_erased: bool = False
    raised: list[tuple[datetime, datetime]] = field(default_factory=list)
    """Deadline, and when it was observed."""

    def shown(self) -> Shown | None:
        if self.has_events:
            return Shown("in_transit", has_events=True, flags=[])
        if self.hours is None:
            return None
        return Shown("unknown", has_events=False, flags=["never_heard"] if self.observed_at else [])

    def await_(self, hours: int, now: datetime) -> None:
        if self.hours == hours and self.observed_at is None:
            return
        if self.hours is None or self.observed_at is not None:
            self.since = now
        assert self.since is not None
        due = self.since + timedelta(hours=hours)
        self.hours, self.observed_at, self.looked_at = hours, None, (due, due)

    def stop(self) -> None:
        self.hours = self.since = self.looked_at = self.observed_at = None

    def look(self, now: datetime, *, is_held: bool) -> None:
        if self.observed_at is not None:
            if now >= self.observed_at + timedelta(days=SHOWN_DAYS):
                self.stop()
        elif self.looked_at is not None and now >= self.looked_at[0]:
            assert self.since is not None
            assert self.hours is not None
            if is_held:
                self.looked_at = now + PUT_OFF[0], now + PUT_OFF[1]
                return
            assert now >= self.looked_at[1], "time passes in longer steps"
            if self.is_heard:
                self.stop()
            else:
                self.observed_at = now
                self.raised.append((self.since + timedelta(hours=self.hours), now))


class Awaited(DatabaseMachine):
    api: Api

    @initialize()
    def start(self) -> None:
        example = next(EXAMPLE)
        self.numbers = [Number(f"1Z{example}P{place}") for place in range(NUMBERS)]
        self.answers: list[tuple[datetime, Shown | None, str]] = []
        """What was answered before a change and after it."""
        self.shown: list[tuple[datetime, Shown | None]] = [(self.move_clock(1), None)] * NUMBERS
        self.said = 0
        self.hold(held=False)

    @rule(place=PLACES, hours=st.sampled_from([1, 12, 48]))
    def await_number(self, place: int, hours: int) -> None:
        one, now = self.numbers[place], self.move_clock(1)
        asked = await_number(
            self.api.connection, AttachedTo("ups", one.number), hours, actor="shop", why={}
        )
        if one.is_erased:
            with pytest.raises(NumberErasedError):
                self.run(asked)
        else:
            self.run(asked)
            one.await_(hours, now)

    @rule(place=PLACES)
    def stop(self, place: int) -> None:
        self.move_clock(1)
        one = self.numbers[place]
        assert self.run(
            stop_awaiting(self.api.connection, AttachedTo("ups", one.number), actor="shop", why={})
        ) is (one.hours is not None)
        one.stop()

    @rule(place=PLACES, by_carrier=st.sampled_from([True, False]))
    def say(self, place: int, *, by_carrier: bool) -> None:
        self.move_clock(1)
        one = self.numbers[place]
        if one.is_erased:
            return
        self.said += 1
        named: dict[str, Any] = {} if by_carrier else {"parcel_carrier_id": "ups"}
        scan = _scan(one.number, Status.IN_TRANSIT, minutes=self.said, **named)
        self.run(self.api.carriers.push(scan, carrier_id="ups" if by_carrier else "aftership"))
        one.is_heard = True
        one.has_events |= by_carrier

    @rule(place=PLACES)
    def erase(self, place: int) -> None:
        self.move_clock(1)
        one = self.numbers[place]
        if one.has_events or one.hours is None:
            return
        self.run(
            erase(
                self.api.connection,
                Erasure(
                    carrier_id="ups",
                    tracking_number=one.number,
                    why="asked to",
                    actor="t",
                    backup_days=7,
                ),
            )
        )
        one.stop()
        one.is_erased = True

    @rule(held=st.booleans())
    def hold(self, *, held: bool) -> None:
        """Hold all carriers, or let them go."""
        self.is_held = held

        async def change() -> None:
            await self.api.connection.execute(HOLD.encode(), (held,))

        self.run(change())

    @rule(hours=st.sampled_from([2, 11, 13, 37, 24 * SHOWN_DAYS]))
    def time_passes(self, hours: int) -> None:
        now = self.move_clock(hours * 3600)
        while self.run(observe_never_heard(self.api.connection, worker="watcher")).is_full:
            pass
        for one in self.numbers:
            one.look(now, is_held=self.is_held)

    @invariant()
    def what_is_observed_and_answered_is_what_the_model_says(self) -> None:
        if not hasattr(self, "numbers"):
            return
        raised = self.run(self._raised())
        for one in self.numbers:
            assert raised.get(one.number, []) == one.raised, one.number
            assert self.run(self._shown(one.number)) == one.shown(), one.number
        sealed_at = self.run(self._seal())
        for one, before in zip(self.numbers, self.shown, strict=True):
            if one.shown() != before[1]:
                self.answers += [(*before, one.number), (sealed_at, one.shown(), one.number)]
        self.shown = [(sealed_at, one.shown()) for one in self.numbers]

    def teardown(self) -> None:
        for at, shown, number in self.answers:
            assert self.run(self._shown(number, as_of=at.isoformat())) == shown, (at, number)

    async def _seal(self) -> datetime:
        """Seal with an entry of now, so that there is a head of now."""
        log = LogBuilder(self.api.connection, self.api.keyring)
        await self._move_clock(1)
        await log.act()
        return (await log.seal()).created_at

    async def _raised(self) -> dict[str, list[tuple[datetime, datetime]]]:
        found: dict[str, list[tuple[datetime, datetime]]] = {}
        for (canonical,) in await (await self.api.connection.execute(OBSERVED.encode())).fetchall():
            entry = json.loads(decompress_json(canonical))
            times = (
                datetime.fromisoformat(entry["since"]),
                datetime.fromisoformat(entry["recorded_at"]),
            )
            found.setdefault(entry["details"]["number"], []).append(times)
        return found

    async def _shown(self, number: str, **asked: str) -> Shown | None:
        reply = await self.api.get(f"/v1/shipments/ups/{number}", params=asked)
        assert reply.status in {200, 404}, reply.body
        body = reply.body
        return (
            Shown(body["status"], body["version"] > 0, body["flags"])
            if reply.status == 200
            else None
        )


@pytest.mark.usefixtures("own_processes")
async def test_what_is_raised_and_answered_keeps_to_its_model_and_a_rebuild_says_the_same(
    api: Api, database: Database
) -> None:
    await check_machine(Awaited, database, examples=10, api=api)
    await check_log(api.connection, api.keyring)
