"""Failures while a batch is applied harm nobody else, and nothing is applied twice."""

import asyncio
import itertools
import time
from typing import Any

import pytest
import structlog

from statesvc.database.wakeups.listener import Listener
from statesvc.database.wakeups.waker import Waker
from statesvc.database.wakeups.wakeup import INBOX
from statesvc.worker.worker_loop import Worker, WorkerLimits
from tests.statesvc.worker.log_check import check_log
from tests.world.shop import Shop, says

pytestmark = pytest.mark.slow


def _scan(number: str, code: str = "AR") -> bytes:
    return says({"number": number, "status": "in_transit", "code": code})


async def _at_event(shop: Shop, code: str, body: str) -> None:
    """Have the database do something else when it is to insert an event with this code."""
    await shop.as_owner(
        "CREATE SEQUENCE statesvc.test_times; GRANT USAGE ON SEQUENCE statesvc.test_times TO"
        " PUBLIC;CREATE FUNCTION statesvc.test_at_event() RETURNS trigger LANGUAGE plpgsql AS $$"
        f" BEGIN IF new.carrier_code = 'T/{code}' THEN {body} END IF; RETURN new; END $$;CREATE"
        " TRIGGER test_at_event BEFORE INSERT ON statesvc.event FOR EACH ROW EXECUTE FUNCTION"
        " statesvc.test_at_event()"
    )


@pytest.mark.parametrize("place", [0, 4, 9])
async def test_a_message_that_the_database_refuses_is_buried_alone(shop: Shop, place: int) -> None:
    await _at_event(shop, "POISON", "RAISE EXCEPTION 'refused' USING ERRCODE = '22000';")
    for n in range(10):
        await shop.push(_scan(f"N{n}", "POISON" if n == place else "AR"))
    messages = await shop.claim()
    with structlog.testing.capture_logs(
        processors=[structlog.contextvars.merge_contextvars]
    ) as logged:
        await shop.process(messages)
    assert {line["token"] for line in logged} == {str(messages[0].token)}, (
        "lines about one batch can be found together"
    )
    (buried,) = [line for line in logged if line["event"] == "messages_buried"]
    assert (buried["carrier"], buried["message_id"]) == ("acme", str(messages[place].message_id))
    letters = await shop.rows("SELECT d.cause, d.detail, d.attempts FROM statesvc.dead_letter d")
    assert letters == [
        ("normalizer_failed", "DataException (SQLSTATE 22000) while its events were applied", 1)
    ]
    assert await shop.value("SELECT count(*) FROM statesvc.message") == 9
    assert await shop.value("SELECT count(*) FROM statesvc.inbox") == 0
    assert await check_log(shop.connection, shop.keyring) == 18


@pytest.mark.parametrize(
    "failure",
    [
        "PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(1);",
        "RAISE EXCEPTION 'x' USING ERRCODE = '40P01';",
    ],
    ids=["connection lost", "deadlock"],
)
async def test_a_passing_failure_is_tried_again_under_the_lease(shop: Shop, failure: str) -> None:
    await _at_event(shop, "AR", f"IF nextval('statesvc.test_times') <= 2 THEN {failure} END IF;")
    await shop.push(_scan("N1"), _scan("N2"))
    assert await shop.process(await shop.claim()) == 2
    assert await shop.rows("SELECT attempts FROM statesvc.message") == [(1,), (1,)]
    assert await shop.value("SELECT count(*) FROM statesvc.dead_letter") == 0
    assert await check_log(shop.connection, shop.keyring) == 4


async def test_a_failure_that_does_not_pass_gives_the_messages_back_uncharged(shop: Shop) -> None:
    await _at_event(shop, "AR", "RAISE EXCEPTION 'x' USING ERRCODE = '40001';")
    await shop.push(_scan("N1"), _scan("N2"))
    assert await shop.process(await shop.claim(), lease_seconds=1.2) == 0
    waiting = await shop.rows(
        "SELECT token, attempts - retries, last_error, extract(epoch FROM available_at -"
        " statesvc.clock())::float8 FROM statesvc.inbox"
    )
    assert [(token, deaths, error) for token, deaths, error, _ in waiting] == [
        (None, 0, "SerializationFailure (SQLSTATE 40001)")
    ] * 2
    assert all(3 < seconds < 6.5 for *_, seconds in waiting)
    await shop.as_owner("DROP TRIGGER test_at_event ON statesvc.event")
    await shop.database.clock.advance(7)
    assert await shop.work() == 2


async def test_a_lease_that_was_lost_meanwhile_drops_the_message(shop: Shop) -> None:
    await shop.push(_scan("N1"), _scan("N2"))
    late = await shop.claim()
    await shop.database.clock.advance(31)
    (rescued,) = await shop.claim()
    assert await shop.process(late) == 1, "the other one is still ours"
    assert await shop.rows("SELECT message_id FROM statesvc.inbox") == [(rescued.message_id,)]
    assert await shop.process([rescued]) == 1
    assert await shop.process(late) == 0
    assert await check_log(shop.connection, shop.keyring) == 4


async def test_a_lost_lease_buries_nothing(shop: Shop) -> None:
    await shop.push(b"unreadable")
    late = await shop.claim()
    await shop.database.clock.advance(31)
    await shop.claim()
    await shop.process(late)
    assert await shop.value("SELECT count(*) FROM statesvc.dead_letter") == 0
    assert await shop.value("SELECT count(*) FROM statesvc.inbox") == 1


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


async def test_no_text_of_an_event_stops_the_worker(shop: Shop) -> None:
    hostile = [
        says(
            {"number": f"BAD{place}", "status": "in_transit", "minute": place, field: text},
            envelope=place,
        )
        for place, (field, text) in enumerate(itertools.product(FIELDS, TEXTS))
    ]
    for body in hostile:
        await shop.push(body, _scan(f"GOOD{len(body)}"))
    await shop.work()
    assert await shop.value("SELECT count(*) FROM statesvc.inbox") == 0
    lost = await shop.rows(
        "SELECT r.message_id FROM statesvc.receipt r WHERE NOT EXISTS (SELECT FROM statesvc.message"
        " m WHERE m.message_id = r.message_id) AND NOT EXISTS (SELECT FROM statesvc.dead_letter d"
        " WHERE d.message_id = r.message_id)"
    )
    assert lost == []
    assert await shop.value(
        "SELECT count(*) FROM statesvc.shipment WHERE number LIKE 'GOOD%'"
    ) == len({len(body) for body in hostile})
    await check_log(shop.connection, shop.keyring)


def _worker(
    shop: Shop,
    listener: Listener,
    waker: Waker,
    **pace: Any,
) -> Worker:
    return Worker(
        shop.context,
        listener=listener,
        woken=listener.event(INBOX),
        waker=waker,
        limits=WorkerLimits(**pace),
    )


async def test_the_loop_works_when_woken_and_stops_without_a_lease(shop: Shop) -> None:
    listener, waker = Listener(shop.database.service_dsn, [INBOX]), Waker(shop.database.service_dsn)
    await listener.start()
    worker = _worker(shop, listener, waker)
    running = asyncio.create_task(worker.run())
    async with asyncio.timeout(10):
        listening = (
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'statesvc listener' AND"
            " datname = current_database()"
        )
        await shop.until(listening, 1)
        await asyncio.sleep(0.1)
        await shop.push(*(_scan(f"N{n}") for n in range(100)))
        await shop.connection.execute("SELECT pg_notify(%s, '')", (INBOX,))
        await shop.until("SELECT count(*) FROM statesvc.message", 100)
        worker.stop()
        worker.stop()
        await running
    await listener.stop()
    await waker.stop()
    assert await shop.value("SELECT count(*) FROM statesvc.inbox") == 0
    assert await check_log(shop.connection, shop.keyring) == 200


async def _count_calls(shop: Shop, function: str) -> str:
    """Have the database count the calls of a function without arguments; return the query of that
    count.
    """
    returned = await shop.value(
        "SELECT pg_get_function_result(%s::regproc)", f"statesvc.{function}"
    )
    await shop.as_owner(
        f"CREATE SEQUENCE statesvc.test_{function}_calls; GRANT ALL ON SEQUENCE"
        f" statesvc.test_{function}_calls TO PUBLIC;ALTER FUNCTION statesvc.{function}() RENAME TO"
        f" test_{function};CREATE FUNCTION statesvc.{function}() RETURNS {returned} LANGUAGE"
        f" plpgsql AS $$ BEGIN PERFORM nextval('statesvc.test_{function}_calls'); RETURN"
        f" statesvc.test_{function}(); END $$"
    )
    return f"SELECT last_value - 1 + is_called::int FROM statesvc.test_{function}_calls"


async def test_however_often_it_is_woken_it_looks_ahead_but_once_a_second(shop: Shop) -> None:
    listener, waker = Listener(shop.database.service_dsn, [INBOX]), Waker(shop.database.service_dsn)
    looks, looks_ahead = await _count_calls(shop, "throttled"), await _count_calls(shop, "next_due")
    worker = _worker(shop, listener, waker)
    began = time.monotonic()
    running = asyncio.create_task(worker.run())
    async with asyncio.timeout(20):
        while await shop.value(looks) < 8:
            listener.event(INBOX).set()
            await asyncio.sleep(0.002)
        worker.stop()
        await running
    assert 1 <= await shop.value(looks_ahead) <= time.monotonic() - began + 1


async def test_what_comes_after_a_small_claim_waits_for_the_cooldown_which_ends_when_the_worker_stops(
    shop: Shop,
) -> None:
    listener, waker = Listener(shop.database.service_dsn, [INBOX]), Waker(shop.database.service_dsn)
    await shop.push(_scan("N1"))
    worker = _worker(shop, listener, waker, cooldown_seconds=60)
    running = asyncio.create_task(worker.run())
    async with asyncio.timeout(10):
        await shop.until("SELECT count(*) FROM statesvc.message", 1)
        await shop.push(_scan("N2"))
        listener.event(INBOX).set()
        await asyncio.sleep(0.2)
        worker.stop()
        await running
    await waker.stop()
    assert await shop.rows("SELECT token, attempts FROM statesvc.inbox") == [(None, 0)]


async def test_what_is_not_finished_within_the_grace_is_given_back_uncharged(shop: Shop) -> None:
    await _at_event(shop, "AR", "PERFORM pg_sleep(8);")
    listener, waker = Listener(shop.database.service_dsn, [INBOX]), Waker(shop.database.service_dsn)
    await shop.push(_scan("N1"))
    worker = _worker(shop, listener, waker, grace_seconds=0.2)
    running = asyncio.create_task(worker.run())
    async with asyncio.timeout(6):
        await shop.until("SELECT count(token) FROM statesvc.inbox", 1)
        await asyncio.sleep(0.2)
        worker.stop()
        await running
    await waker.stop()
    assert await shop.rows("SELECT token, attempts, retries FROM statesvc.inbox") == [(None, 0, 0)]
    assert await shop.value("SELECT count(*) FROM statesvc.event") == 0


async def test_a_worker_that_was_stopped_before_it_ran_claims_nothing(shop: Shop) -> None:
    listener, waker = Listener(shop.database.service_dsn, [INBOX]), Waker(shop.database.service_dsn)
    await shop.push(_scan("N1"))
    worker = _worker(shop, listener, waker)
    worker.stop()
    await asyncio.wait_for(worker.run(), 5)
    assert await shop.value("SELECT attempts FROM statesvc.inbox") == 0


async def test_a_slow_batch_keeps_its_lease(shop: Shop) -> None:
    await _at_event(shop, "AR", "PERFORM pg_sleep(2);")
    listener, waker = Listener(shop.database.service_dsn, [INBOX]), Waker(shop.database.service_dsn)
    await shop.push(_scan("N1"))
    running = asyncio.create_task(
        (worker := _worker(shop, listener, waker, lease_seconds=1.0)).run()
    )
    await shop.until("SELECT count(token) FROM statesvc.inbox", 1)
    await asyncio.sleep(1.3)
    assert await shop.claim() == []
    await shop.until("SELECT count(*) FROM statesvc.message", 1)
    worker.stop()
    await running
    await waker.stop()
    assert await shop.rows("SELECT attempts FROM statesvc.message") == [(1,)]


async def test_a_suspect_is_worked_on_with_nothing_else_in_progress(shop: Shop) -> None:
    # what was in the hands of a dead worker goes first and alone; what came later waits for it
    await shop.push(*(_scan(f"OLD{n}") for n in range(3)))
    await shop.claim()
    await shop.database.clock.advance(31)
    await shop.push(*(_scan(f"NEW{n}") for n in range(5)))
    listener, waker = Listener(shop.database.service_dsn, [INBOX]), Waker(shop.database.service_dsn)
    running = asyncio.create_task((worker := _worker(shop, listener, waker)).run())
    await shop.until("SELECT count(*) FROM statesvc.message", 8)
    worker.stop()
    await running
    await waker.stop()
    batches = await shop.rows(
        "SELECT count(DISTINCT e.message_id) FROM statesvc.event e GROUP BY e.batch_id ORDER BY"
        " min(e.recorded_at)"
    )
    assert batches == [(1,), (1,), (1,), (5,)]
    assert await shop.rows("SELECT DISTINCT outcome, attempt FROM statesvc.message_attempt") == [
        ("lease_ended", 1)
    ]
    assert await check_log(shop.connection, shop.keyring) == 16


async def test_a_bound_that_is_reached_delays_nothing_beyond_the_end_of_a_batch(shop: Shop) -> None:
    """Nobody is woken when a batch ends: the worker itself must look again."""
    await shop.connection.execute(
        "INSERT INTO statesvc.carrier_quota (carrier_id, in_flight_max, changed_at, changed_by)"
        " VALUES ('acme', 2, now(), 'test')"
    )
    await shop.push(*(_scan(f"N{n}") for n in range(40)))
    listener, waker = Listener(shop.database.service_dsn, [INBOX]), Waker(shop.database.service_dsn)
    running = asyncio.create_task(
        (worker := _worker(shop, listener, waker, sweep_seconds_without_listener=30)).run()
    )
    async with asyncio.timeout(8):
        await shop.until("SELECT count(*) FROM statesvc.message", 40)
    worker.stop()
    await running
    await waker.stop()


async def test_attempts_name_the_normalizer_and_dead_letters_too(shop: Shop) -> None:
    await _at_event(shop, "AR", "RAISE EXCEPTION 'x' USING ERRCODE = '40001';")
    (given_back,) = await shop.push(_scan("N1"))
    (buried,) = await shop.push(b"unreadable")
    await shop.process(await shop.claim(), lease_seconds=1.1)
    kept = (
        "SELECT message_id, outcome, worker, error, normalizer FROM statesvc.message_attempt ORDER"
        " BY attempt_id"
    )
    assert await shop.rows(kept) == [
        (buried, "buried", "worker-1", "unreadable", "acme@1"),
        (given_back, "retried", "worker-1", "SerializationFailure (SQLSTATE 40001)", "acme@1"),
    ]
    assert await shop.rows("SELECT normalizer FROM statesvc.dead_letter") == [("acme@1",)]
