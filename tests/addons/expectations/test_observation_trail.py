"""Observations where people read them: history, audit with its notifications, evidence; as of a
day, after an erasure.
"""

import json
from datetime import datetime
from typing import Any

import pytest

from events.merkle.checkpoint import VerifierKey
from events.vocabulary import Status
from statesvc.addons.evidence.check_bundle import check
from statesvc.addons.expectations.observe import observe
from statesvc.subscriptions import subscription_store as store
from tests.world.deliver import deliver
from tests.world.log_builder import LogBuilder

ONE = "/v1/shipments/ups/5"
HOUR = 3600.0


@pytest.fixture
async def log(api: Any) -> LogBuilder:
    """Make a parcel of which nothing is heard: stalled, then sealed."""
    request = store.SubscriptionRequest(url="https://example.test/hook")
    await store.create(
        api.carriers.connection, api.carriers.keyring, request, actor="test", owner="bootstrap"
    )
    return LogBuilder(api.connection, api.keyring)


async def stall(api: Any, scan: Any, database: Any, log: LogBuilder) -> datetime:
    """Stall a parcel; return when all but the observation was sealed."""
    now: datetime = (await log.rows("SELECT statesvc.clock()"))[0][0]
    minutes = int((now - scan("5", Status.IN_TRANSIT).time.instant).total_seconds() // 60)
    await api.carriers.push(scan("5", Status.IN_TRANSIT, minutes=minutes))
    before = (await log.seal()).created_at
    await database.clock.advance(121 * HOUR)
    assert len((await observe(api.connection, worker="watcher")).observations) == 1
    await log.seal()
    return before


async def get(api: Any, path: str, **query: Any) -> Any:
    reply = await api.get(ONE + path, scopes="audit read", params=query)
    assert reply.status == 200, reply.body
    return reply.body


async def test_history_and_audit_list_it_and_as_of_a_day_before_they_do_not(
    api: Any, scan: Any, database: Any, log: LogBuilder
) -> None:
    before = (await stall(api, scan, database, log)).isoformat()
    (seen,) = (await get(api, "/history"))["observations"]
    assert (seen["kind"], seen["hours"], seen["status"], seen["rules"], seen["version"]) == (
        "stalled",
        120,
        "in_transit",
        0,
        1,
    )
    assert seen["log_index"] is not None
    audit = await get(api, "/audit")
    assert audit["observations"] == [seen]
    assert audit["shipment"]["flags"] == ["stalled"]
    waits = {each["type"]: each for each in audit["notifications"]}
    assert waits.keys() == {"shipment.status_changed", "shipment.stalled"}
    notified = waits["shipment.stalled"]
    assert (notified["sequence"], notified["occurred_at"], notified["waiting"]) == (
        seen["sequence"],
        seen["since"],
        True,
    )
    for _ in range(2):  # one of a shipment at a time
        await deliver(api.carriers.connection, api.carriers.keyring)
    assert {each["outcome"] for each in (await get(api, "/audit"))["notifications"]} == {
        "delivered"
    }
    then = await get(api, "/audit", as_of=before)
    assert (then["observations"], then["shipment"]["flags"]) == ([], [])
    assert [each["type"] for each in then["notifications"]] == ["shipment.status_changed"]
    assert (await get(api, "/history", as_of=before))["observations"] == []


async def test_later_pages_of_a_history_do_not_repeat_it(
    api: Any, scan: Any, database: Any, log: LogBuilder
) -> None:
    await stall(api, scan, database, log)
    await api.carriers.push(scan("5", Status.PICKED_UP))
    first = await get(api, "/history", limit=1)
    rest = await get(api, "/history", limit=1, cursor=first["next_cursor"])
    assert (len(first["observations"]), rest["observations"]) == (1, [])


@pytest.mark.usefixtures("own_processes")
async def test_evidence_proves_it_and_an_erasure_takes_nothing_of_it_away(
    api: Any, scan: Any, database: Any, log: LogBuilder
) -> None:
    await stall(api, scan, database, log)
    bundle = await get(api, "/evidence")
    assert (
        check(
            json.dumps(bundle).encode(), [VerifierKey.parse(key) for key in bundle["log"]["keys"]]
        )
        == []
    )
    assert [
        json.loads(each["canonical"])["kind"]
        for each in bundle["entries"]
        if each["kind"] == "observation"
    ] == ["stalled"]
    erased = await api.call("POST", f"{ONE}/erase", scopes="admin", json={"why": "asked to"})
    assert erased.status in {200, 202}, erased.body
    assert len((await get(api, "/history"))["observations"]) == 1
    assert (await get(api, ""))["flags"] == ["stalled"]
    # what comes after it is expected of an erased shipment, too
    await database.clock.advance(2 * HOUR)
    assert (await observe(api.connection, worker="watcher")).observations == []
