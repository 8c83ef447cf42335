"""An entry about a shipment may come years after its last event.

Readers plan with the months that have any, and miss none.
"""

from typing import Any
from uuid import uuid4

from psycopg import AsyncConnection

from events.vocabulary import Status
from statesvc.log.history import History
from statesvc.log.personal_read_entries import PersonalRead, record_personal_read
from statesvc.subscriptions import subscription_store as store
from statesvc.subscriptions.replay import ReplayRequest, replay
from tests.world.deliver import deliver
from tests.world.due_work import do_due_work
from tests.world.log_builder import LogBuilder

FORTY_DAYS = 40 * 86400.0
SETTLED = """INSERT INTO statesvc.message (message_id, received_at, settled_at, attempts, events, carrier_id, outcome,
    normalizer, worker, shipments)
VALUES (%s, %s, %s, 1, 1, 'ups', 'applied', 'ups@1', 'worker-1', %s::uuid[])"""


async def get(api: Any, number: str, call: str) -> Any:
    reply = await api.get(f"/v1/shipments/ups/{number}{call}", scopes="audit read pii")
    assert reply.status == 200, reply.body
    return reply.body


async def months(api: Any, number: str) -> int:
    """Count the months from the first event to the last entry, as readers bound it."""
    query = """SELECT (extract(year FROM age(m.last, m.first)) * 12 + extract(month FROM age(m.last, m.first)))::int FROM (
        SELECT date_trunc('month', first_recorded_at, 'UTC') AS first,
            date_trunc('month', greatest(recorded_at, entries_until), 'UTC') AS last
        FROM statesvc.stream WHERE number = %s) m"""
    ((found,),) = await (await api.connection.execute(query, [number])).fetchall()
    return int(found)


async def test_attempts_observations_replays_and_readings_of_later_months_are_found(
    api: Any, scan: Any, database: Any, service: AsyncConnection[Any], tmp_path: Any
) -> None:
    carriers, clock = api.carriers, database.clock
    request = store.SubscriptionRequest(url="https://example.test/hook")
    subscription_id, _ = await store.create(
        carriers.connection, carriers.keyring, request, actor="test", owner="bootstrap"
    )
    now = await clock.now()
    minutes = int((now - scan("5", Status.IN_TRANSIT).time.instant).total_seconds() // 60)
    message_id = await carriers.push(scan("5", Status.IN_TRANSIT, minutes=minutes))
    shipment_id = (await get(api, "5", ""))["shipment_id"]

    await clock.advance(FORTY_DAYS)
    await deliver(carriers.connection, carriers.keyring)
    (delivered,) = (await get(api, "5", "/audit"))["notifications"]
    assert len(delivered["attempts"]) == 1

    await clock.advance(FORTY_DAYS)
    await do_due_work(api.connection)
    assert len((await get(api, "5", "/history"))["observations"]) == 1
    assert len((await get(api, "5", "/audit"))["notifications"]) == 2

    await clock.advance(FORTY_DAYS)
    again = ReplayRequest(
        subscription_id=subscription_id,
        since=now,
        until=await clock.now(),
        open_end=False,
        delivered_too=True,
        dry_run=False,
        actor="test",
        run_id=uuid4(),
    )
    await replay(service, again, archive=History(tmp_path))
    first, *_ = sorted(
        (await get(api, "5", "/audit"))["notifications"], key=lambda one: one["created_at"]
    )
    assert [each["replayed"] for each in first["fanouts"]] == [False, True]

    await carriers.execute(SETTLED, [message_id, now, now, [shipment_id]])
    for target in (f"shipment {shipment_id}", f"message {message_id}"):
        await clock.advance(FORTY_DAYS)
        await record_personal_read(
            api.connection, PersonalRead(actor="key 1", target=target, details={"call": "state"})
        )
        assert (await get(api, "5", "/audit"))["readings"][-1]["target"] == target
    assert 5 <= await months(api, "5") <= 7

    log = LogBuilder(api.connection, api.keyring)
    await log.seal()
    kinds = [each["kind"] for each in (await get(api, "5", "/evidence"))["entries"]]
    assert {kind: kinds.count(kind) for kind in set(kinds)} == {
        "event": 1,
        "transition": 1,
        "fanout": 3,
        "observation": 1,
        "attempt": 1,
    }


async def test_a_contradiction_that_precedes_all_else_of_a_shipment_is_found(
    api: Any, scan: Any, database: Any
) -> None:
    await api.carriers.push(scan("5", Status.PICKED_UP, native_id="S1"))
    await database.clock.advance(FORTY_DAYS)
    await api.carriers.push(scan("6", Status.DELIVERED, native_id="S1"))
    await database.clock.advance(FORTY_DAYS)
    await api.carriers.push(scan("6", Status.PICKED_UP))
    for number in "56":
        assert len((await get(api, number, "/audit"))["conflicts"]) == 1
    assert await months(api, "5") == 0
