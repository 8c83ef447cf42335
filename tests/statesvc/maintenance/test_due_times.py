"""Due times after a clock that was ahead: nothing waits for the time that it showed; what waits by
a rule goes on waiting.
"""

from typing import Any

from psycopg import AsyncConnection

from statesvc.database.wakeups.wakeup import READY_NOW
from statesvc.maintenance.upkeep import inbox_due_times, repair_inbox, seconds_in_future
from tests.world.worker_harness import WorkerHarness, push_body

HOUR = 3600.0
DAY = 24 * HOUR
PICKED_UP = push_body({"number": "A1", "status": "picked_up"})
RETRY = "SELECT statesvc.retry(%s, %s::uuid[], ARRAY[%s::interval], ARRAY['busy'])"


class Woken:
    def __init__(self) -> None:
        self.channels: list[str] = []

    def wake(self, channel: str) -> None:
        self.channels.append(channel)


async def ready(harness: WorkerHarness) -> int:
    return int(
        await harness.value(
            "SELECT count(*) FROM statesvc.inbox WHERE token IS NULL AND available_at <="
            " statesvc.clock()"
        )
    )


async def test_a_message_that_came_while_the_clock_was_ahead_is_not_held_until_then(
    harness: WorkerHarness,
) -> None:
    await harness.database.clock.advance(HOUR)
    await harness.push(PICKED_UP)
    await harness.database.clock.advance(-HOUR)
    assert await harness.claim() == []
    assert HOUR - 60 < await seconds_in_future(harness.connection) < HOUR + 60
    woken = Woken()
    # one pass of it
    await inbox_due_times(harness.context.pool, harness.context.telemetry, woken)._work()  # noqa: SLF001
    assert woken.channels == list(READY_NOW)
    assert len(await harness.claim()) == 1
    assert (
        'statesvc_due_times_repaired_total{queue="inbox"}'
        in harness.context.telemetry.exposition().decode()
    )
    assert await repair_inbox(harness.connection) == 0


async def test_a_message_that_was_given_back_while_the_clock_was_ahead_comes_at_once(
    harness: WorkerHarness,
) -> None:
    await harness.push(PICKED_UP)
    await harness.database.clock.advance(HOUR)
    (message,) = await harness.claim()
    await harness.rows(RETRY, message.token, [message.message_id], "5 seconds")
    await harness.database.clock.advance(-HOUR)
    assert await ready(harness) == 0
    assert await repair_inbox(harness.connection) >= 1
    assert await ready(harness) == 1


async def test_new_messages_do_not_hide_below_a_mark_that_was_set_ahead(
    harness: WorkerHarness,
) -> None:
    await harness.ingest({"number": "B1", "status": "picked_up"})
    await harness.connection.execute(
        "UPDATE statesvc.lane SET low_water = statesvc.clock() + interval '1 hour' WHERE carrier_id"
        " = 'acme'"
    )
    assert await seconds_in_future(harness.connection) > HOUR - 60
    assert await repair_inbox(harness.connection) == 1
    assert await harness.value(
        "SELECT low_water = '-infinity' FROM statesvc.lane WHERE carrier_id = 'acme'"
    )


async def test_what_waits_by_a_rule_goes_on_waiting(harness: WorkerHarness) -> None:
    await harness.push(PICKED_UP)
    (message,) = await harness.claim()
    await harness.rows(RETRY, message.token, [message.message_id], "2 hours")
    assert await repair_inbox(harness.connection) == 0
    assert await ready(harness) == 0
    assert await seconds_in_future(harness.connection) < 1


async def test_a_lease_of_weeks_is_none(harness: WorkerHarness) -> None:
    await harness.push(PICKED_UP)
    await harness.database.clock.advance(20 * DAY)
    await harness.claim()
    await harness.database.clock.advance(-20 * DAY)
    assert await repair_inbox(harness.connection) >= 1


async def test_what_another_holds_is_not_waited_for(harness: WorkerHarness, database: Any) -> None:
    await harness.database.clock.advance(HOUR)
    await harness.push(PICKED_UP)
    await harness.database.clock.advance(-HOUR)
    async with await AsyncConnection.connect(database.service_dsn) as other:
        await other.execute("SELECT FROM statesvc.inbox FOR UPDATE")
        await repair_inbox(harness.connection)
    assert await repair_inbox(harness.connection) == 1


async def test_an_eta_explains_any_due_time(harness: WorkerHarness) -> None:
    await harness.push(PICKED_UP)
    await harness.connection.execute(
        "UPDATE statesvc.inbox SET eta = statesvc.clock() + interval '90 days'"
    )
    await harness.connection.execute("UPDATE statesvc.inbox SET available_at = eta")
    assert await repair_inbox(harness.connection) == 0
    assert await ready(harness) == 0
    await harness.connection.execute(
        "UPDATE statesvc.inbox SET available_at = available_at + interval '1 day'"
    )
    assert await repair_inbox(harness.connection) == 1
