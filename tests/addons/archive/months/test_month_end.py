"""A month ends under traffic, is archived, and a person of it is erased: the log stays whole."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from psycopg import AsyncConnection

from statesvc.privacy.erasure import Erasure, erase
from statesvc.shipments.rebuild.rebuild import Rebuild
from tests.statesvc.api.test_erasure import dump
from tests.statesvc.append.test_locked_shipments import LEFT, workers
from tests.statesvc.privacy.legible_values import legible
from tests.world.attack import places
from tests.world.log_archiver import DAY, Archiver
from tests.world.worker_harness import CARRIER_ID, WorkerHarness, push_body, shipment

PERSON = ("Zebedee Quux", "Zanzibar Lane 77", "Under the blue pot")
OTHER = "Mortimer Other"
PARTLY = "PARTLY"
"""State of the month that ends, and of the one after the next: its first entries are in files, its
last one is in the tables.
"""
LIVELY = [f"M{n}" for n in range(10)]


def scans(minute: int, status: str) -> list[bytes]:
    return [
        push_body({"number": number, "status": status, "minute": minute, "signed_by": OTHER})
        for number in LIVELY
    ]


async def months_of(harness: WorkerHarness, number: str) -> int:
    """Return in how many months the tables have events of a shipment."""
    found: int = await harness.value(
        "SELECT count(DISTINCT date_trunc('month', recorded_at AT TIME ZONE 'UTC')) FROM"
        " statesvc.event WHERE shipment_id = %s",
        shipment(number),
    )
    return found


async def until_month_turns(archiver: Archiver, *, before_seconds: float) -> None:
    now = (await archiver.database.clock.now()).astimezone(UTC)
    turn = datetime(now.year + now.month // 12, now.month % 12 + 1, 1, tzinfo=UTC)
    await archiver.database.clock.advance((turn - now).total_seconds() - before_seconds)


def cells(folder: Path) -> Iterator[bytes]:
    """Yield every value of every file, and the files as they are."""
    for path in folder.iterdir():
        yield path.read_bytes()
        if path.suffix == ".parquet":
            for column in pq.read_table(path).columns:
                yield from (
                    value if isinstance(value, bytes) else str(value).encode()
                    for value in column.to_pylist()
                    if value is not None
                )


@pytest.mark.parametrize("erased_while", ["partly_archived", "brought_back"])
async def test_a_month_that_ends_under_traffic_is_archived_and_its_people_can_be_erased(
    harness: WorkerHarness, archiver: Archiver, api: Any, erased_while: str
) -> None:
    await until_month_turns(archiver, before_seconds=50)
    await archiver.log.act()
    async with workers(harness, 2):
        await harness.push(
            push_body(
                {
                    "number": PARTLY,
                    "status": "picked_up",
                    "description": PERSON[2],
                    "signed_by": PERSON[0],
                }
            )
        )
        await harness.until(LEFT, 0)
        await harness.push(
            push_body(
                {
                    "number": PARTLY,
                    "status": "in_transit",
                    "minute": 1,
                    "delivery_address": PERSON[1],
                }
            )
        )
        for minute, status in enumerate(
            ("picked_up", "in_transit", "in_transit", "out_for_delivery")
        ):
            await harness.push(*scans(minute, status))
            if not minute:
                # the month before has entries of each, however quickly the clock goes on
                await harness.until(LEFT, 0)
            # neither waits for the other: the month turns between two of these, or inside a
            # transaction
            await archiver.database.clock.advance(20)
            await archiver.log.seal()
        await harness.until(LEFT, 0)
        await harness.push(*scans(5, "in_transit"))
        await harness.until(LEFT, 0)
        await archiver.log.seal()
        assert await months_of(harness, "M0") == 2
        assert await months_of(harness, PARTLY) == 1

        await archiver.database.clock.advance(32 * DAY)
        await harness.push(*scans(6, "delivered"))
        archived, _ = await asyncio.gather(
            archiver.run_pass(), harness.push(*scans(7, "in_transit"))
        )
        assert (len(archived.archived), archived.failed) == (1, [])
        await harness.push(
            push_body(
                {"number": PARTLY, "status": "delivered", "minute": 8, "signed_by": PERSON[0]}
            )
        )
        await harness.until(LEFT, 0)
    await archiver.log.seal()
    assert (
        await harness.value(
            "SELECT version FROM statesvc.stream WHERE shipment_id = %s", shipment(PARTLY)
        )
        == 3
    )
    assert await months_of(harness, PARTLY) == 1, "its first entries are archived"
    assert PERSON[0].encode() in await legible(harness.connection, cells(archiver.folder))
    if erased_while == "brought_back":
        await archiver.archive.restore_shipments(archiver.connection, [shipment(PARTLY)])
        assert await months_of(harness, PARTLY) == 2

    files = {path.name: path.read_bytes() for path in archiver.folder.iterdir()}
    erasure = Erasure(
        carrier_id=CARRIER_ID, tracking_number=PARTLY, why="asked to", actor="tester", backup_days=7
    )
    assert (await erase(harness.connection, erasure)).shipments == [shipment(PARTLY)]
    await archiver.log.seal()

    await archiver.archive.restore_shipments(archiver.connection, [shipment(PARTLY)])
    assert {path.name: path.read_bytes() for path in archiver.folder.iterdir()} == files
    legibly = await legible(harness.connection, cells(archiver.folder))
    assert [word for word in PERSON if word.encode() in legibly] == []
    assert OTHER.encode() in legibly
    async with await AsyncConnection.connect(
        archiver.database.superuser_dsn, autocommit=True
    ) as owner:
        dumped = await dump(owner)
    assert [word for word in PERSON if word in dumped] == []
    compared = Rebuild(
        owner_dsn=archiver.database.owner_dsn,
        actor="tester",
        processes=1,
        progress=lambda *_: None,
        archive=archiver.archive,
    )
    events = await harness.value("SELECT sum(version) FROM statesvc.stream")
    assert await compared.compare() == (events, [])

    trail = (
        await api.get(
            f"/v1/shipments/{CARRIER_ID}/{PARTLY}/audit",
            scopes="audit pii",
            params={"include": "personal"},
        )
    ).body
    assert [event["status"] for event in trail["events"]] == [
        "picked_up",
        "in_transit",
        "delivered",
    ]
    assert [(each["from"], each["to"]) for each in trail["transitions"]] == [
        ("unknown", "picked_up"),
        ("picked_up", "in_transit"),
        ("in_transit", "delivered"),
    ]
    assert [word for word in PERSON if word in str(trail)] == []
    assert places(archiver.verify()) == []
