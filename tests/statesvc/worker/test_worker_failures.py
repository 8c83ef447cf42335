"""Failures while a batch is applied harm nobody else, and nothing is applied twice."""

import asyncio
import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
import structlog

from statesvc.database.wakeups.listener import Listener
from statesvc.database.wakeups.wakeup import INBOX, INBOX_NOW, READY_NOW
from statesvc.queue.claim import next_claim as ask_next
from statesvc.worker import worker_loop
from tests.statesvc.worker.log_check import check_log
from tests.world.worker_harness import ACME, WorkerHarness, push_body

pytestmark = pytest.mark.slow


def _scan(number: str, code: str = "AR", **more: Any) -> bytes:
    return push_body({"number": number, "status": "in_transit", "code": code, **more})


async def _at_event(harness: WorkerHarness, code: str, body: str) -> None:
    """Have the database do something else when it is to insert an event with this code."""
    await harness.as_owner(
        "CREATE SEQUENCE statesvc.test_times; GRANT USAGE ON SEQUENCE statesvc.test_times TO"
        " PUBLIC;CREATE FUNCTION statesvc.test_at_event() RETURNS trigger LANGUAGE plpgsql AS $$"
        f" BEGIN IF new.carrier_code = 'T/{code}' THEN {body} END IF; RETURN new; END $$;CREATE"
        " TRIGGER test_at_event BEFORE INSERT ON statesvc.event FOR EACH ROW EXECUTE FUNCTION"
        " statesvc.test_at_event()"
    )


@pytest.mark.parametrize("place", [0, 4, 9])
async def test_a_message_that_the_database_refuses_is_buried_alone(
    harness: WorkerHarness, place: int
) -> None:
    await _at_event(harness, "POISON", "RAISE EXCEPTION 'refused' USING ERRCODE = '22000';")
    for n in range(10):
        await harness.push(_scan(f"N{n}", "POISON" if n == place else "AR"))
    messages = await harness.claim()
    with structlog.testing.capture_logs(
        processors=[structlog.contextvars.merge_contextvars]
    ) as logged:
        await harness.process(messages)
    assert {line["token"] for line in logged} == {str(messages[0].token)}, (
        "lines about one batch can be found together"
    )
    (buried,) = [line for line in logged if line["event"] == "messages_buried"]
    assert (buried["carrier"], buried["message_id"]) == ("acme", str(messages[place].message_id))
    letters = await harness.rows("SELECT d.cause, d.detail, d.attempts FROM statesvc.dead_letter d")
    assert letters == [
        ("normalizer_failed", "DataException (SQLSTATE 22000) while its events were applied", 1)
    ]
    assert await harness.value("SELECT count(*) FROM statesvc.message") == 9
    assert await harness.value("SELECT count(*) FROM statesvc.inbox") == 0
    assert await check_log(harness.connection, harness.keyring) == 18


@pytest.mark.parametrize(
    "failure",
    [
        "PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(1);",
        "RAISE EXCEPTION 'x' USING ERRCODE = '40P01';",
    ],
    ids=["connection lost", "deadlock"],
)
async def test_a_passing_failure_is_tried_again_under_the_lease(
    harness: WorkerHarness, failure: str
) -> None:
    await _at_event(harness, "AR", f"IF nextval('statesvc.test_times') <= 2 THEN {failure} END IF;")
    await harness.push(_scan("N1"), _scan("N2"))
    assert await harness.process(await harness.claim()) == 2
    assert await harness.rows("SELECT attempts FROM statesvc.message") == [(1,), (1,)]
    assert await harness.value("SELECT count(*) FROM statesvc.dead_letter") == 0
    assert await check_log(harness.connection, harness.keyring) == 4


async def test_a_failure_that_does_not_pass_gives_the_messages_back_uncharged(
    harness: WorkerHarness,
) -> None:
    await _at_event(harness, "AR", "RAISE EXCEPTION 'x' USING ERRCODE = '40001';")
    await harness.push(_scan("N1"), _scan("N2"))
    assert await harness.process(await harness.claim(), lease_seconds=1.2) == 0
    waiting = await harness.rows(
        "SELECT token, attempts - retries, last_error, extract(epoch FROM available_at -"
        " statesvc.clock())::float8 FROM statesvc.inbox"
    )
    assert [(token, deaths, error) for token, deaths, error, _ in waiting] == [
        (None, 0, "SerializationFailure (SQLSTATE 40001)")
    ] * 2
    assert all(3 < seconds < 6.5 for *_, seconds in waiting)
    await harness.as_owner("DROP TRIGGER test_at_event ON statesvc.event")
    await harness.database.clock.advance(7)
    assert await harness.work() == 2


async def test_a_lease_that_was_lost_meanwhile_drops_the_message(harness: WorkerHarness) -> None:
    await harness.push(_scan("N1"), _scan("N2"))
    late = await harness.claim()
    await harness.database.clock.advance(31)
    (rescued,) = await harness.claim()
    assert await harness.process(late) == 1, "the other one is still ours"
    assert await harness.rows("SELECT message_id FROM statesvc.inbox") == [(rescued.message_id,)]
    assert await harness.process([rescued]) == 1
    assert await harness.process(late) == 0
    assert await check_log(harness.connection, harness.keyring) == 4


async def test_a_lost_lease_buries_nothing(harness: WorkerHarness) -> None:
    await harness.push(b"unreadable")
    late = await harness.claim()
    await harness.database.clock.advance(31)
    await harness.claim()
    await harness.process(late)
    assert await harness.value("SELECT count(*) FROM statesvc.dead_letter") == 0
    assert await harness.value("SELECT count(*) FROM statesvc.inbox") == 1


TEXTS = ("\x00", "a\x00b", "\ud800", "x" * 100_000, "\u202e", "")
FIELDS = (
    "number",
    "native_id",
    "type",
    "code",
    "city",
    "description",
    "signed_by",
    "estimated_delivery",
    "stamp",
    "discriminator",
)


async def test_no_text_of_an_event_stops_the_worker(harness: WorkerHarness) -> None:
    hostile = [
        push_body(
            {"number": f"BAD{place}", "status": "in_transit", "minute": place, field: text},
            envelope=place,
        )
        for place, (field, text) in enumerate(itertools.product(FIELDS, TEXTS))
    ]
    for body in hostile:
        await harness.push(body, _scan(f"GOOD{len(body)}"))
    await harness.work()
    assert await harness.value("SELECT count(*) FROM statesvc.inbox") == 0
    lost = await harness.rows(
        "SELECT r.message_id FROM statesvc.receipt r WHERE NOT EXISTS (SELECT FROM statesvc.message"
        " m WHERE m.message_id = r.message_id) AND NOT EXISTS (SELECT FROM statesvc.dead_letter d"
        " WHERE d.message_id = r.message_id)"
    )
    assert lost == []
    assert await harness.value(
        "SELECT count(*) FROM statesvc.shipment WHERE number LIKE 'GOOD%'"
    ) == len({len(body) for body in hostile})
    await check_log(harness.connection, harness.keyring)


async def test_the_loop_works_when_woken_and_stops_without_a_lease(harness: WorkerHarness) -> None:
    listener = Listener(harness.database.service_dsn, READY_NOW)
    await listener.start()
    await listener.wait_up(10)
    async with harness.worker(listener) as worker:
        await asyncio.sleep(0.1)
        await harness.push(*(_scan(f"N{n}") for n in range(100)))
        await harness.connection.execute("SELECT pg_notify(%s, '')", (INBOX,))
        await harness.until("SELECT count(*) FROM statesvc.message", 100)
        worker.stop()
    assert await harness.value("SELECT count(*) FROM statesvc.inbox") == 0
    assert await check_log(harness.connection, harness.keyring) == 200


async def test_what_is_not_finished_within_the_grace_is_given_back_uncharged(
    harness: WorkerHarness,
) -> None:
    await _at_event(harness, "AR", "PERFORM pg_sleep(8);")
    await harness.push(_scan("N1"))
    async with harness.worker(seconds=6, grace_seconds=0.2):
        await harness.until("SELECT count(token) FROM statesvc.inbox", 1)
        await asyncio.sleep(0.2)
    assert await harness.rows("SELECT token, attempts, retries FROM statesvc.inbox") == [
        (None, 0, 0)
    ]
    assert await harness.value("SELECT count(*) FROM statesvc.event") == 0


async def test_a_worker_that_was_stopped_before_it_ran_claims_nothing(
    harness: WorkerHarness,
) -> None:
    await harness.push(_scan("N1"))
    async with harness.worker(seconds=5) as worker:
        worker.stop()
    assert await harness.value("SELECT attempts FROM statesvc.inbox") == 0


async def test_a_slow_batch_keeps_its_lease(harness: WorkerHarness) -> None:
    await _at_event(harness, "AR", "PERFORM pg_sleep(2);")
    await harness.push(_scan("N1"))
    async with harness.worker(lease_seconds=1.0):
        await harness.until("SELECT count(token) FROM statesvc.inbox", 1)
        await asyncio.sleep(1.3)
        assert await harness.claim() == []
        await harness.until("SELECT count(*) FROM statesvc.message", 1)
    assert await harness.rows("SELECT attempts FROM statesvc.message") == [(1,)]


async def test_a_bound_that_is_reached_delays_nothing_beyond_the_end_of_a_batch(
    harness: WorkerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody is woken when a batch ends: the worker itself must look again, also where the batch
    ends while the worker asks whether there is anything to wait for.
    """
    await harness.connection.execute(
        "INSERT INTO statesvc.carrier_quota (carrier_id, in_flight_max, changed_at, changed_by)"
        " VALUES ('acme', 2, now(), 'test')"
    )
    await harness.push(*(_scan(f"N{n}") for n in range(40)))

    async def next_claim(*about: Any, ahead: bool) -> tuple[float | None, bool]:
        """Without the second after which the database has a worker look again anyway."""
        _, throttled = await ask_next(*about, ahead=ahead)
        batches = [one for one in asyncio.all_tasks() if one.get_name().startswith("batch-")]
        if next(asked) % 2 and batches:
            await asyncio.wait(batches)
        return None, throttled

    asked = itertools.count()
    monkeypatch.setattr(worker_loop, "next_claim", next_claim)
    monkeypatch.setattr(worker_loop, "_NEXT_DUE_SECONDS", 60)
    async with harness.worker(sweep_seconds_without_listener=60):
        await harness.until("SELECT count(*) FROM statesvc.message", 40)


async def test_attempts_name_the_normalizer_and_dead_letters_too(harness: WorkerHarness) -> None:
    await _at_event(harness, "AR", "RAISE EXCEPTION 'x' USING ERRCODE = '40001';")
    (given_back,) = await harness.push(_scan("N1"))
    (buried,) = await harness.push(b"unreadable")
    await harness.process(await harness.claim(), lease_seconds=1.1)
    kept = (
        "SELECT message_id, outcome, worker, error, normalizer FROM statesvc.message_attempt ORDER"
        " BY attempt_id"
    )
    assert await harness.rows(kept) == [
        (buried, "buried", "worker-1", "unreadable", "acme@1"),
        (given_back, "retried", "worker-1", "SerializationFailure (SQLSTATE 40001)", "acme@1"),
    ]
    assert await harness.rows("SELECT normalizer FROM statesvc.dead_letter") == [("acme@1",)]


class PausedListener(Listener):
    """Tells in which of its pauses the worker is: they last as long as a query only for the end of
    its window.
    """

    pauses = 0
    is_paused = False

    def pause(self) -> int | None:
        return self.pauses if self.is_paused else None

    @contextmanager
    def paused(self, channel: str) -> Iterator[None]:
        self.pauses += 1
        self.is_paused = True
        try:
            with super().paused(channel):
                yield
        finally:
            self.is_paused = False


@pytest.fixture
def listener(harness: WorkerHarness) -> PausedListener:
    return PausedListener(harness.database.service_dsn, READY_NOW)


async def _push_in_window(harness: WorkerHarness, listener: PausedListener) -> None:
    """Push until one waits: a claim that could not say whether it left something is followed at
    once, and opens no window.
    """
    for number in range(5):
        await harness.push(_scan(f"N{number}"))
        listener.event(INBOX).set()
        before = listener.pause()
        while waiting := await harness.rows("SELECT token, attempts FROM statesvc.inbox"):
            if before is not None and before == listener.pause() and waiting == [(None, 0)]:
                return
            await asyncio.sleep(0.01)
            before = listener.pause()
    pytest.fail("no push waited for a window")


async def test_pushes_wait_and_what_is_hurried_does_not(
    harness: WorkerHarness, listener: PausedListener
) -> None:
    async with harness.worker(listener, window_seconds=60):
        await _push_in_window(harness, listener)
        listener.event(INBOX_NOW).set()
        await harness.until("SELECT count(*) FROM statesvc.inbox", 0, seconds=1)


async def test_a_worker_that_stops_ends_its_window(
    harness: WorkerHarness, listener: PausedListener
) -> None:
    async with harness.worker(listener, window_seconds=60):
        await _push_in_window(harness, listener)
    assert await harness.rows("SELECT token, attempts FROM statesvc.inbox") == [(None, 0)]


async def test_what_becomes_due_ends_the_window(harness: WorkerHarness) -> None:
    await harness.push(_scan("N1"))
    await harness.as_owner(
        "UPDATE statesvc.inbox SET available_at = statesvc.clock() + interval '0.5 s'"
    )
    async with harness.worker(window_seconds=60):
        await harness.until("SELECT count(*) FROM statesvc.message", 1)


async def test_another_worker_claims_within_the_window_of_the_first(
    harness: WorkerHarness, listener: PausedListener
) -> None:
    async with harness.worker(listener, window_seconds=60):
        await _push_in_window(harness, listener)
        assert len(await harness.claim()) == 1


async def test_a_push_whose_wake_up_was_lost_waits_for_the_sweep_and_no_window_more(
    harness: WorkerHarness, listener: PausedListener
) -> None:
    async with harness.worker(listener, window_seconds=0.1, sweep_seconds=0.5):
        await listener.start()
        await listener.wait_up(5)
        await harness.push(_scan("N1"))
        await harness.until("SELECT count(*) FROM statesvc.message", 1, seconds=2)


async def test_scans_of_a_shipment_keep_their_order_over_windows(
    harness: WorkerHarness, listener: PausedListener
) -> None:
    # of two batches in progress the second may find the shipment locked, and come after a third
    async with harness.worker(listener, window_seconds=0.1, batches_in_progress=1):
        for minute in range(6):
            await harness.push(_scan("N1", minute=minute, city=f"city {minute}"))
            listener.event(INBOX).set()
            await asyncio.sleep(0.04)
        await harness.until("SELECT count(*) FROM statesvc.message", 6)
    assert [event["location"]["city"] for event in await harness.events("N1")] == [
        f"city {minute}" for minute in range(6)
    ]
    await check_log(harness.connection, harness.keyring)


async def test_at_a_high_pace_there_is_no_window(
    harness: WorkerHarness, listener: PausedListener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_loop, "_PACE_MAX", 1)
    async with harness.worker(listener, window_seconds=60):
        await _push_in_window(harness, listener)
        await harness.push(*(_scan(f"F{number}") for number in range(10)))
        listener.event(INBOX_NOW).set()
        await harness.until("SELECT count(*) FROM statesvc.inbox", 0)
        await harness.push(_scan("Q1"))
        listener.event(INBOX).set()
        await harness.until("SELECT count(*) FROM statesvc.inbox", 0, seconds=5)


async def test_behind_a_flood_there_is_no_window(harness: WorkerHarness) -> None:
    quiet = replace(ACME, carrier_id="quiet")
    harness.context = replace(
        harness.context, carriers={**harness.context.carriers, "quiet": quiet}
    )
    await harness.push(*(_scan(f"F{n}") for n in range(300)))
    await harness.push(_scan("Q1"), carrier_id="quiet")
    async with harness.worker(window_seconds=60, batch_max=64):
        await harness.until("SELECT count(*) FROM statesvc.message WHERE carrier_id = 'quiet'", 1)
        await harness.until("SELECT count(*) FROM statesvc.message", 301)
