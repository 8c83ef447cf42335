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
from tests.world import log_archiver
from tests.world.attack import places
from tests.world.log_archiver import DAY, Archiver
from tests.world.log_builder import scan
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


@pytest.mark.parametrize("erased_while", ["partly_archived", "brought_back"])
async def test_a_month_that_ends_under_traffic_is_archived_and_its_people_can_be_erased(
    harness: WorkerHarness, archiver: Archiver, api: Any, erased_while: str
) -> None:
    clock = archiver.database.clock
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
            await clock.advance(20)
            await archiver.log.seal()
        await harness.until(LEFT, 0)
        await harness.push(*scans(5, "in_transit"))
        await harness.until(LEFT, 0)
        await archiver.log.seal()
        assert await months_of(harness, "M0") == 2
        assert await months_of(harness, PARTLY) == 1

        await clock.advance(32 * DAY)
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

    erasure = Erasure(
        carrier_id=CARRIER_ID, tracking_number=PARTLY, why="asked to", actor="tester", backup_days=7
    )
    assert (await erase(harness.connection, erasure)).shipments == [shipment(PARTLY)]
    await archiver.log.seal()

    legibly = await legible(harness.connection, cells(archiver.folder))
    assert [word for word in PERSON if word.encode() in legibly] == []
    assert OTHER.encode() in legibly
    async with await AsyncConnection.connect(
        archiver.database.superuser_dsn, autocommit=True
    ) as owner:
        dumped = await dump(owner)
    assert [word for word in PERSON if word in dumped] == []
    assert places(archiver.verify()) == []
    compared = Rebuild(
        owner_dsn=archiver.database.owner_dsn,
        actor="tester",
        processes=1,
        progress=lambda *_: None,
        archive=archiver.archive,
    )
    events, drift = await compared.compare()
    assert (events, drift) == (await harness.value("SELECT sum(version) FROM statesvc.stream"), [])

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


WORD = "Zebedee Quux"


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


async def test_after_an_erasure_neither_tables_nor_files_tell_of_the_person(
    archiver: Archiver,
) -> None:
    await archiver.log.append(scan("1Z0050", 1, None, signed_by=WORD))
    await archiver.log.append(scan("1Z0051", 1, None, signed_by=OTHER))
    await archiver.two_months()
    month = await archiver.archived()
    files = {path.name: path.read_bytes() for path in archiver.folder.iterdir()}
    assert (
        await archiver.log.rows(
            f"SELECT FROM statesvc.event WHERE shipment_id = '{log_archiver.shipment('1Z0050')}'"
        )
        == []
    )
    legibly = await legible(archiver.connection, cells(archiver.folder))
    assert WORD.encode() in legibly, "the hunt finds what is there"
    assert WORD.encode() not in await legible(archiver.connection), "it was in the file alone"
    erasure = Erasure(
        carrier_id="ups", tracking_number="1Z0050", why="asked to", actor="tester", backup_days=7
    )
    assert (await erase(archiver.connection, erasure)).shipments == [
        log_archiver.shipment("1Z0050")
    ]
    legibly = await legible(archiver.connection, cells(archiver.folder))
    assert WORD.encode() not in legibly
    assert OTHER.encode() in legibly
    await archiver.archive.restore_shipments(archiver.connection, [log_archiver.shipment("1Z0050")])
    assert WORD.encode() not in await legible(archiver.connection)
    assert {path.name: path.read_bytes() for path in archiver.folder.iterdir()} == files
    await archiver.log.seal()
    assert places(archiver.verify()) == []
    assert month.file_name in files
