"""Due times after a clock that was ahead: nothing waits for the time that it showed; what waits by
a rule goes on waiting.
"""

from typing import Any

from psycopg import AsyncConnection

from statesvc.database.wakeups.wakeup import READY_NOW
from statesvc.maintenance.due_times import inbox_due_times, repair_inbox, seconds_in_future
from tests.world.shop import Shop, says

HOUR = 3600.0
DAY = 24 * HOUR
PICKED_UP = says({"number": "A1", "status": "picked_up"})
RETRY = "SELECT statesvc.retry(%s, %s::uuid[], ARRAY[%s::interval], ARRAY['busy'])"


class Woken:
    def __init__(self) -> None:
        self.channels: list[str] = []

    def wake(self, channel: str) -> None:
        self.channels.append(channel)


async def ready(shop: Shop) -> int:
    return int(
        await shop.value(
            "SELECT count(*) FROM statesvc.inbox WHERE token IS NULL AND available_at <="
            " statesvc.clock()"
        )
    )


async def test_a_message_that_came_while_the_clock_was_ahead_is_not_held_until_then(
    shop: Shop,
) -> None:
    await shop.database.clock.advance(HOUR)
    await shop.push(PICKED_UP)
    await shop.database.clock.advance(-HOUR)
    assert await shop.claim() == []
    assert HOUR - 60 < await seconds_in_future(shop.connection) < HOUR + 60
    woken = Woken()
    # one pass of it
    await inbox_due_times(shop.context.pool, shop.context.telemetry, woken)._work()  # noqa: SLF001
    assert woken.channels == list(READY_NOW)
    assert len(await shop.claim()) == 1
    assert (
        'statesvc_due_times_repaired_total{queue="inbox"}'
        in shop.context.telemetry.exposition().decode()
    )
    assert await repair_inbox(shop.connection) == 0


async def test_a_message_that_was_given_back_while_the_clock_was_ahead_comes_at_once(
    shop: Shop,
) -> None:
    await shop.push(PICKED_UP)
    await shop.database.clock.advance(HOUR)
    (message,) = await shop.claim()
    await shop.rows(RETRY, message.token, [message.message_id], "5 seconds")
    await shop.database.clock.advance(-HOUR)
    assert await ready(shop) == 0
    assert await repair_inbox(shop.connection) >= 1
    assert await ready(shop) == 1


async def test_new_messages_do_not_hide_below_a_mark_that_was_set_ahead(shop: Shop) -> None:
    await shop.say({"number": "B1", "status": "picked_up"})
    await shop.connection.execute(
        "UPDATE statesvc.lane SET low_water = statesvc.clock() + interval '1 hour' WHERE carrier_id"
        " = 'acme'"
    )
    assert await seconds_in_future(shop.connection) > HOUR - 60
    assert await repair_inbox(shop.connection) == 1
    assert await shop.value(
        "SELECT low_water = '-infinity' FROM statesvc.lane WHERE carrier_id = 'acme'"
    )


async def test_what_waits_by_a_rule_goes_on_waiting(shop: Shop) -> None:
    await shop.push(PICKED_UP)
    (message,) = await shop.claim()
    await shop.rows(RETRY, message.token, [message.message_id], "2 hours")
    assert await repair_inbox(shop.connection) == 0
    assert await ready(shop) == 0
    assert await seconds_in_future(shop.connection) < 1


async def test_a_clock_that_was_behind_needs_no_repair(shop: Shop) -> None:
    await shop.database.clock.advance(-HOUR)
    await shop.push(PICKED_UP)
    await shop.database.clock.advance(HOUR)
    assert await repair_inbox(shop.connection) == 0
    assert len(await shop.claim()) == 1


async def test_a_lease_of_weeks_is_none(shop: Shop) -> None:
    await shop.push(PICKED_UP)
    await shop.database.clock.advance(20 * DAY)
    await shop.claim()
    await shop.database.clock.advance(-20 * DAY)
    assert await repair_inbox(shop.connection) >= 1


async def test_what_another_holds_is_not_waited_for(shop: Shop, database: Any) -> None:
    await shop.database.clock.advance(HOUR)
    await shop.push(PICKED_UP)
    await shop.database.clock.advance(-HOUR)
    async with await AsyncConnection.connect(database.service_dsn) as other:
        await other.execute("SELECT FROM statesvc.inbox FOR UPDATE")
        await repair_inbox(shop.connection)
    assert await repair_inbox(shop.connection) == 1


async def test_an_eta_explains_any_due_time(shop: Shop) -> None:
    await shop.push(PICKED_UP)
    await shop.connection.execute(
        "UPDATE statesvc.inbox SET eta = statesvc.clock() + interval '90 days'"
    )
    await shop.connection.execute("UPDATE statesvc.inbox SET available_at = eta")
    assert await repair_inbox(shop.connection) == 0
    assert await ready(shop) == 0
    await shop.connection.execute(
        "UPDATE statesvc.inbox SET available_at = available_at + interval '1 day'"
    )
    assert await repair_inbox(shop.connection) == 1
