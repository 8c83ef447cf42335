"""The row of a shipment that is kept up to date, against the fold of its whole history: equal in
every column, whatever happened.

One number in several spellings, numbers that are used twice, late and repeated scans, values that
come later, corrections of carriers and of ours, erased shipments. Triggers that spoil the row, and
a fold that takes the wrong event, show that a difference is seen.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import HealthCheck, example, given, settings
from psycopg import AsyncConnection, sql

from events.vocabulary import Kind, Reason, Status
from projections.row import ShipmentRow, rebuilt_row
from statesvc.log.history import History
from statesvc.log.json_compression import decompress_json
from statesvc.log.personal_read_entries import PersonalRead, record_personal_read
from statesvc.shipments.expectation_rules import read_rules
from statesvc.shipments.rebuild.rebuild import Rebuild
from statesvc.subscriptions import subscription_store as store
from statesvc.subscriptions.replay import ReplayRequest, replay
from tests.statesvc.shipments.shipment_history import (
    SCANS,
    STEPS,
    Erased,
    Look,
    Messages,
    Push,
    Reread,
    Scan,
    ShipmentHistory,
    Step,
)
from tests.world.database import Database
from tests.world.deliver import deliver
from tests.world.due_work import do_due_work
from tests.world.log_builder import LogBuilder, log_builder

Rebuilt = Callable[[UUID, Sequence[bytes], Any], ShipmentRow]
EXAMPLES = settings(
    # each is a story on the database; make fuzz tells 2,000 of them
    max_examples=max(60, settings().max_examples // 10),
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
COLUMNS = sql.SQL(", ").join(map(sql.Identifier, ShipmentRow._fields))
LIVE = sql.SQL(
    "SELECT {} FROM statesvc.shipment WHERE number = ANY (%s) ORDER BY shipment_id"
).format(COLUMNS)
HISTORIES = b"""
SELECT x.shipment_id, x.canonical FROM (
    SELECT e.shipment_id, e.version, e.canonical FROM statesvc.event e
    UNION ALL SELECT v.shipment_id, v.version, v.canonical FROM statesvc.observation v
) x WHERE x.shipment_id = ANY (%s) ORDER BY x.shipment_id, x.version"""

TOLD_SCANS = (
    Scan(status=Status.INFO_RECEIVED, hours_ago=300, country="CA"),
    Scan(status=Status.OUT_FOR_DELIVERY, hours_ago=200, reason=Reason.WEATHER),
    Scan(status=Status.DELIVERY_ATTEMPTED, hours_ago=210),
    Scan(status=Status.DELIVERED, hours_ago=5),
    Scan(kind=Kind.UNMAPPED, hours_ago=4),
)
TOLD_STEPS: tuple[Step, ...] = (
    Messages(((Push(0, service="UPS Ground"),),)),
    Messages(((Push(1, spelling=1, estimated_delivery="2026-03-06"),),)),
    Look(),
    Messages(((Push(2, spelling=2, estimated_delivery="2026-03-05"),),)),
    Messages(((Push(3, spelling=1, service="UPS SurePost"),), (Push(3, signed_by="R. Roe"),))),
    Messages(((Push(4, spelling=2),),)),
    Reread(3),
)
"""A parcel that is late, attempted (which comes late), delivered, signed for later; the
delivery is taken back.
"""
ERASED_STEPS: tuple[Step, ...] = (
    Messages(((Push(0),),)),
    Erased(0),
    Messages(((Push(3, signed_by="R. Roe"),),)),
)


async def compare(history: ShipmentHistory, rebuilt: Rebuilt) -> None:
    """Compare every column of every row of this history."""
    connection = history.log.connection
    live = {
        row[0]: ShipmentRow(*row)._replace(state=decompress_json(row[-1]))
        for row in await (await connection.execute(LIVE, (history.numbers(),))).fetchall()
    }
    rules = (await read_rules(connection)).of
    entries = await (await connection.execute(HISTORIES, (list(live),))).fetchall()
    canonicals = {
        shipment_id: [decompress_json(canonical) for _, canonical in its]
        for shipment_id, its in groupby(entries, key=itemgetter(0))
    }
    for shipment_id, row in live.items():
        assert row._asdict() == rebuilt(shipment_id, canonicals[shipment_id], rules)._asdict()


async def play(
    log: LogBuilder, scans: Sequence[Scan], steps: Sequence[Step], rebuilt: Rebuilt = rebuilt_row
) -> None:
    """Play the steps; compare after each."""
    history = ShipmentHistory(log, scans)
    for step in steps:
        await history.take(step)
        await compare(history, rebuilt)


@pytest.fixture
async def log(database: Database) -> AsyncIterator[LogBuilder]:
    async with log_builder(database) as telling:
        yield telling


async def test_the_row_kept_up_to_date_is_the_fold_of_its_history(log: LogBuilder) -> None:
    loop = asyncio.get_running_loop()

    @EXAMPLES
    @example(scans=TOLD_SCANS, steps=TOLD_STEPS)
    @example(scans=TOLD_SCANS, steps=ERASED_STEPS)
    @given(scans=SCANS, steps=STEPS)
    def examples(scans: Sequence[Scan], steps: Sequence[Step]) -> None:
        told: Coroutine[Any, Any, None] = play(log, scans, steps)
        asyncio.run_coroutine_threadsafe(told, loop).result(60)

    await asyncio.to_thread(examples)


@pytest.mark.usefixtures("own_processes")
async def test_a_rebuild_finds_no_drift_in_a_number_of_several_spellings(
    database: Database, log: LogBuilder
) -> None:
    for steps in (TOLD_STEPS, ERASED_STEPS):
        await play(log, TOLD_SCANS, steps)
    task = Rebuild(
        owner_dsn=database.owner_dsn,
        actor="t",
        processes=1,
        progress=lambda *_: None,
        archive=History(None),
    )
    assert (await task.compare())[1] == []


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
