"""The claim protocol against a model, on a real database whose clock stands still unless it is
moved.

Whatever clients do in whatever order, with tokens that are current or long lost, the inbox holds
exactly what the model says. Two broken protocols show that the machine sees what it is there for.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import hypothesis.strategies as st
import psycopg
from hypothesis import HealthCheck, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from tests.statesvc.queue.model import CARRIERS, DEATHS_MAX, LEASE_SECONDS, NOBODY, Inbox, Waiting

FROZEN_CLOCK = """
CREATE TABLE statesvc.frozen_clock (at timestamptz NOT NULL);
INSERT INTO statesvc.frozen_clock VALUES (date_trunc('second', now()));
GRANT SELECT, UPDATE ON statesvc.frozen_clock TO PUBLIC;
CREATE OR REPLACE FUNCTION statesvc.clock() RETURNS timestamptz LANGUAGE sql VOLATILE RETURN (SELECT at FROM statesvc.frozen_clock);
"""
PLACES = st.integers(0, 1000)
MASKS = st.integers(0, 2**12 - 1)
EXAMPLES = settings(
    max_examples=60,
    stateful_step_count=50,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)


class Protocol(Inbox, RuleBasedStateMachine):
    connection: psycopg.Connection[Any]
    put_so_far = 1

    @initialize()
    def start(self) -> None:
        self.run(
            "WITH i AS (DELETE FROM statesvc.inbox), r AS (DELETE FROM statesvc.receipt), l AS"
            " (DELETE FROM statesvc.lane WHERE carrier_id <> '') UPDATE statesvc.lane SET low_water"
            " = '-infinity'"
        )
        self.run(
            "TRUNCATE statesvc.dead_letter, statesvc.rollout, statesvc.carrier_quota,"
            " statesvc.message_attempt"
        )
        self.run("DELETE FROM statesvc.body")
        self.run("SELECT setseed(0.5)")
        self.start_at = self.run("SELECT statesvc.clock()")[0][0]

    def run(self, query: str, *parameters: Any) -> list[Any]:
        cursor = self.connection.execute(query.encode(), parameters or None)
        return cursor.fetchall() if cursor.description else []

    def count(self, query: str, *parameters: Any) -> int:
        return int(self.run(query, *parameters)[0][0])

    @rule(
        carrier_ids=st.lists(st.sampled_from(CARRIERS), min_size=1, max_size=4),
        digest=st.integers(0, 30),
    )
    def put(self, carrier_ids: list[str], digest: int) -> None:
        ids = [UUID(int=self.put_so_far + n) for n in range(len(carrier_ids))]
        self.put_so_far += len(ids)
        digests = [bytes([digest + n]) * 16 for n in range(len(ids))]
        answers = self.run(
            "SELECT message_id, duplicate FROM statesvc.put(%s::uuid[], %s::text[], %s::bytea[],"
            " %s::bytea[], %s::bytea[], %s::bytea[], array_fill('{}'::jsonb, ARRAY[%s]), %s::int[])"
            " ORDER BY ordinal",
            *(
                ids,
                carrier_ids,
                digests,
                [b"b"] * len(ids),
                [b"k"] * len(ids),
                [bytes(32)] * len(ids),
                len(ids),
                [1] * len(ids),
            ),
        )
        for message_id, carrier_id, name, answer in zip(
            ids, carrier_ids, digests, answers, strict=True
        ):
            assert answer == (self.receipts.get(name, message_id), name in self.receipts)
            if name not in self.receipts:
                self.receipts[name] = message_id
                self.waiting[message_id] = Waiting(carrier_id, self.now)

    @rule(
        limit=st.integers(len(CARRIERS), 6),
        sweep=st.booleans(),
        rescue_first=st.booleans(),
    )
    def claim(self, limit: int, *, sweep: bool, rescue_first: bool) -> None:
        self.take(limit, sweep=sweep, rescue_first=rescue_first)

    def take(self, limit: int, *, sweep: bool, rescue_first: bool) -> None:
        claimed = self.run(
            "SELECT message_id, token, rescued_from, buried_for, complete"
            " FROM statesvc.claim('w', %s, make_interval(secs => %s), 'any', 1000000, %s, %s,"
            " true)",
            limit,
            LEASE_SECONDS,
            sweep,
            rescue_first,
        )
        complete = any(row[-1] for row in claimed)
        reported = {message_id: cause for message_id, *_, cause, _ in claimed if cause}
        claimed = [tuple(row) for *row, cause, _ in claimed if not cause and row[0] is not None]
        taken = {message_id for message_id, *_ in claimed}
        assert self.bury_the_dead(taken) == reported
        ended = self.ended()
        suspects = taken & set(ended)
        ready = {carrier_id: self.ready(carrier_id) for carrier_id in CARRIERS}
        if suspects or (rescue_first and ended):
            assert len(taken) == 1, "a message whose worker died is claimed alone"
            assert suspects, "and before all others, or when there is no other"
            assert rescue_first or not any(self.within_bound(*each) for each in ready.items())
        else:
            room = sum(self.within_bound(*each) for each in ready.items())
            assert len(taken) == min(limit, room), "work-conserving, within the bounds"
            for carrier_id, its in ready.items():
                assert len(taken & set(its)) <= self.within_bound(carrier_id, its)
                assert len(taken & set(its)) >= min(
                    self.share(carrier_id, limit), self.within_bound(carrier_id, its)
                ), "its share"
            waiting = {message_id for its in ready.values() for message_id in its}
            assert taken <= waiting
            assert not complete or taken == waiting, "it said that nothing was left"
        for message_id, token, rescued_from in claimed:
            message = self.waiting[message_id]
            assert rescued_from == ("w" if message.leased else None)
            if message.leased:
                self.attempts[message_id, message.attempts, "lease_ended"] += 1
            message.token, message.available_at = token, self.now + LEASE_SECONDS
            message.attempts += 1
        self.tokens += {token for _, token, _ in claimed}

    def bury_the_dead(self, taken: set[UUID]) -> dict[UUID, str]:
        """Bury suspects with too many deaths until one is found that may live; which ties go first
        is free. Return whom it hit.
        """
        dead_letters = self.run(
            "SELECT message_id FROM statesvc.dead_letter WHERE cause = 'worker_died' AND"
            " resolved_at IS NULL"
        )
        buried = dict.fromkeys({m for (m,) in dead_letters} - set(self.buried), "worker_died")
        for message_id in buried:
            message = self.waiting.pop(message_id)
            assert message.attempts - message.retries >= DEATHS_MAX
            assert message.leased
            self.attempts[message_id, message.attempts, "lease_ended"] += 1
        self.buried |= buried
        for message_id in taken:
            assert self.waiting[message_id].attempts - self.waiting[message_id].retries < DEATHS_MAX
        if not taken:
            assert not self.ended(), "somebody waits for rescue"
        return buried

    @rule(place=PLACES, mask=MASKS)
    def settle(self, place: int, mask: int) -> None:
        """Settle as the workers that append do: lock by token, then end what is still leased."""
        token = self.token(place)
        chosen = self.chosen(token, mask)
        with self.connection.transaction():
            held = self.run(
                "SELECT message_id FROM statesvc.inbox WHERE token = %s AND message_id = ANY (%s)"
                " FOR UPDATE",
                token,
                chosen,
            )
            mine = [message_id for (message_id,) in held]
            self.run("DELETE FROM statesvc.inbox WHERE message_id = ANY (%s)", mine)
        assert set(mine) == set(self.lease(token)) & set(chosen)
        for message_id in mine:
            del self.waiting[message_id]
            self.settled.add(message_id)

    @rule(place=PLACES, mask=MASKS)
    def hand_over(self, place: int, mask: int) -> None:
        token = self.token(place)
        chosen = self.chosen(token, mask)
        results = ",".join(
            f'{{"message_id": "{m}", "normalizer": "go@1", "events": "AA=="}}' for m in chosen
        )
        mine = [m for m in chosen if m in self.lease(token) and self.waiting[m].stage == "raw"]
        assert self.count("SELECT statesvc.settle(%s, %s::jsonb)", token, f"[{results}]") == len(
            mine
        )
        for message_id in mine:
            self.waiting[message_id] = Waiting(
                self.waiting[message_id].carrier_id, self.now, stage="normalized"
            )

    @rule(place=PLACES, mask=MASKS, delay=st.integers(0, 60))
    def retry(self, place: int, mask: int, delay: int) -> None:
        token = self.token(place)
        chosen = self.chosen(token, mask)
        mine = [m for m in chosen if m in self.lease(token)]
        query = (
            "SELECT statesvc.retry(%s, %s::uuid[], (SELECT array_agg(make_interval(secs => %s))"
            " FROM unnest(%s::uuid[])), (SELECT array_agg('Lost'::text) FROM unnest(%s::uuid[])))"
        )
        assert self.count(query, token, chosen, delay, chosen, chosen) == len(mine)
        for message_id in mine:
            message = self.waiting[message_id]
            self.attempts[message_id, message.attempts, "retried"] += 1
            message.give_back(self.now + delay)
            message.retries += 1

    @rule(place=PLACES, mask=MASKS)
    def bury(self, place: int, mask: int) -> None:
        token = self.token(place)
        chosen = self.chosen(token, mask)
        mine = [m for m in chosen if m in self.lease(token)]
        query = (
            "SELECT statesvc.bury(%s, %s::uuid[], (SELECT array_agg('unreadable'::text) FROM"
            " unnest(%s::uuid[])), (SELECT array_agg(''::text) FROM unnest(%s::uuid[])))"
        )
        assert self.count(query, token, chosen, chosen, chosen) == len(mine)
        for message_id in mine:
            self.attempts[message_id, self.waiting[message_id].attempts, "buried"] += 1
            del self.waiting[message_id]
            self.buried[message_id] = "unreadable"

    @rule(place=PLACES)
    def replay(self, place: int) -> None:
        """Replay a dead letter as if it had never been tried, once; but not while its carrier is
        held.
        """
        if not self.buried:
            return
        message_id = sorted(self.buried)[place % len(self.buried)]
        ((letter_id, carrier_id),) = self.run(
            "SELECT dead_letter_id, carrier_id FROM statesvc.dead_letter WHERE message_id = %s AND"
            " resolved_at IS NULL",
            message_id,
        )
        query = (
            "SELECT obstacle FROM statesvc.replay_dead_letters(ARRAY[%s::bigint], 'tester', '',"
            " gen_random_uuid())"
        )
        if carrier_id in self.held:
            assert self.run(query, letter_id) == [("held",)]
            return
        assert self.run(query, letter_id) == [(None,)]
        assert self.run(query, letter_id) == [("replayed",)]
        del self.buried[message_id]
        self.waiting[message_id] = Waiting(carrier_id, self.now)

    @rule(place=PLACES, seconds=st.integers(1, 60))
    def extend(self, place: int, seconds: int) -> None:
        token = self.token(place)
        mine = self.lease(token)
        assert self.count(
            "SELECT statesvc.extend(%s, make_interval(secs => %s))", token, seconds
        ) == len(mine)
        for message_id in mine:
            self.waiting[message_id].available_at = self.now + seconds

    @rule(place=PLACES)
    def release(self, place: int) -> None:
        token = self.token(place)
        mine = self.lease(token)
        assert self.count("SELECT statesvc.release(%s)", token) == len(mine)
        for message_id in mine:
            message = self.waiting[message_id]
            message.give_back(self.now)
            message.attempts -= 1

    @rule(place=PLACES, mask=MASKS)
    def decline(self, place: int, mask: int) -> None:
        token = self.token(place)
        chosen = self.chosen(token, mask)
        mine = [m for m in chosen if m in self.lease(token) and self.waiting[m].stage == "raw"]
        assert self.count("SELECT statesvc.decline(%s, %s::uuid[])", token, chosen) == len(mine)
        for message_id in mine:
            message = self.waiting[message_id]
            message.give_back(self.now)
            message.attempts -= 1
            message.stage = "declined"

    @rule(seconds=st.sampled_from([1, 11, LEASE_SECONDS, 2 * LEASE_SECONDS]))
    def time_passes(self, seconds: int) -> None:
        self.pass_time(seconds)

    def pass_time(self, seconds: int) -> None:
        self.now += seconds
        self.run("UPDATE statesvc.frozen_clock SET at = at + make_interval(secs => %s)", seconds)

    @rule(times=st.integers(1, 6), limit=st.integers(len(CARRIERS), 6))
    def workers_die(self, times: int, limit: int) -> None:
        for _ in range(times):
            self.take(limit, sweep=False, rescue_first=True)
            self.pass_time(LEASE_SECONDS)

    @rule(carrier_id=st.sampled_from(CARRIERS))
    def hold_or_release_a_carrier(self, carrier_id: str) -> None:
        self.held ^= {carrier_id}
        self.run(
            "INSERT INTO statesvc.rollout (carrier_id, hold, changed_at, changed_by) VALUES (%s,"
            " %s, now(), 'test') ON CONFLICT (carrier_id) DO UPDATE SET hold = excluded.hold",
            carrier_id,
            carrier_id in self.held,
        )

    @rule(
        carrier_id=st.sampled_from(CARRIERS),
        weight=st.sampled_from([0.1, 1.0, 3.0]),
        in_flight_max=st.sampled_from([None, 1, 1, 2]),
    )
    def set_quota(self, carrier_id: str, weight: float, in_flight_max: int | None) -> None:
        self.weights[carrier_id], self.bounds[carrier_id] = weight, in_flight_max
        self.run(
            "INSERT INTO statesvc.carrier_quota (carrier_id, weight, in_flight_max, changed_at,"
            " changed_by) VALUES (%s, %s, %s, now(), 'test') ON CONFLICT (carrier_id) DO UPDATE SET"
            " weight = excluded.weight, in_flight_max = excluded.in_flight_max",
            carrier_id,
            weight,
            in_flight_max,
        )

    @invariant()
    def the_inbox_holds_what_the_model_says(self) -> None:
        if not hasattr(self, "start_at"):
            return
        found = self.run(
            "SELECT message_id, carrier_id, extract(epoch FROM available_at - %s)::int, CASE WHEN"
            " worker IS NULL AND token IS NOT NULL THEN %s::uuid ELSE token END, attempts, retries,"
            " stage FROM statesvc.inbox",
            self.start_at,
            NOBODY,
        )
        assert {row[0]: tuple(row[1:]) for row in found} == {
            m: (w.carrier_id, w.available_at, w.token, w.attempts, w.retries, w.stage)
            for m, w in self.waiting.items()
        }
        assert (
            dict(
                self.run(
                    "SELECT message_id, cause FROM statesvc.dead_letter WHERE resolved_at IS NULL"
                )
            )
            == self.buried
        )
        assert (
            Counter(self.run("SELECT message_id, attempt, outcome FROM statesvc.message_attempt"))
            == self.attempts
        )
        assert set(self.receipts.values()) == set(self.waiting) | set(self.buried) | self.settled, (
            "nothing is lost, nothing is in two places"
        )


@contextmanager
def machine(database: Any) -> Iterator[type[Protocol]]:
    with psycopg.connect(database.superuser_dsn, autocommit=True) as connection:
        connection.execute(FROZEN_CLOCK.encode())
        yield type("ProtocolOnThisDatabase", (Protocol,), {"connection": connection})


async def test_the_protocol_keeps_to_its_model(database: Any) -> None:
    with machine(database) as protocol:
        run_state_machine_as_test(protocol, settings=EXAMPLES)
