"""The projection built anew: equal to the live one, beside traffic, and back again."""

import asyncio
import random
from itertools import pairwise
from typing import Any
from uuid import UUID

import pytest
from psycopg import AsyncConnection

from statesvc.log.history import History
from statesvc.shipments.rebuild import rebuild as rebuild_run
from statesvc.shipments.rebuild.folding import MISSING, UNFOUNDED, Drift
from statesvc.shipments.rebuild.rebuild import Rebuild, RebuildError, catch_up
from statesvc.shipments.rebuild.staging import EVENT_BYTES, SLICE_EVENTS, place_of, slices
from tests.world.worker_harness import WorkerHarness, push_body, shipment

COLUMNS = "SELECT * FROM statesvc.shipment ORDER BY shipment_id"


def task(harness: WorkerHarness, *, processes: int = 1) -> Rebuild:
    return Rebuild(
        owner_dsn=harness.database.owner_dsn,
        actor="tester",
        processes=processes,
        progress=lambda *_: None,
    )


async def tell_stories(harness: WorkerHarness, parcels: int, seed: int = 1) -> None:
    """Push late, repeated, contradicting and corrected scans."""
    chance = random.Random(seed)
    statuses = [
        "info_received",
        "picked_up",
        "in_transit",
        "exception",
        "out_for_delivery",
        "delivered",
        "returning",
        None,
    ]
    pushes = []
    for parcel in range(parcels):
        for _ in range(chance.randrange(1, 6)):
            status = chance.choice(statuses)
            said: dict[str, Any] = {
                "number": f"P{parcel}",
                "minute": chance.randrange(500),
                "code": chance.choice("ABC"),
            }
            said |= {} if chance.randrange(4) else {"is_timed": False}
            said |= (
                {"status": status}
                if status
                else {"kind": chance.choice(["unmapped", "correction", "info"])}
            )
            pushes.append(push_body(said))
    chance.shuffle(pushes)
    await harness.push(*pushes)
    await harness.work()


@pytest.mark.usefixtures("own_processes")
async def test_every_row_is_what_its_events_add_up_to(harness: WorkerHarness) -> None:
    await tell_stories(harness, 60)
    events, drift = await task(harness).compare()
    assert events == await harness.value("SELECT count(*) FROM statesvc.event")
    assert drift == []


@pytest.mark.usefixtures("own_processes")
async def test_planted_drift_is_found_and_named(harness: WorkerHarness) -> None:
    await tell_stories(harness, 5)
    await harness.as_owner(
        "UPDATE statesvc.shipment SET status = 'lost', attempts = 7 WHERE shipment_id ="
        f" '{shipment('P1')}'"
    )
    await harness.as_owner(f"DELETE FROM statesvc.shipment WHERE shipment_id = '{shipment('P2')}'")
    await harness.as_owner(
        f"UPDATE statesvc.shipment SET shipment_id = '{UUID(int=9)}' WHERE shipment_id ="
        f" '{shipment('P3')}'"
    )
    _, drift = await task(harness).compare()
    assert sorted(drift, key=lambda one: one.shipment_id) == sorted(
        [
            Drift(shipment("P1"), "acme", ("attempts", "status")),
            Drift(shipment("P2"), "acme", (MISSING,)),
            Drift(shipment("P3"), "acme", (MISSING,)),
            Drift(UUID(int=9), "acme", (UNFOUNDED,)),
        ],
        key=lambda one: one.shipment_id,
    )


@pytest.mark.usefixtures("own_processes")
async def test_a_rebuild_mends_the_projection_tells_nobody_and_the_worker_goes_on(
    harness: WorkerHarness,
) -> None:
    await tell_stories(harness, 30)
    right = await harness.rows(COLUMNS)
    told = await harness.value("SELECT count(*) FROM statesvc.notification")
    await harness.as_owner("UPDATE statesvc.shipment SET status = 'lost'")
    assert await task(harness, processes=2).rebuild() == await harness.value(
        "SELECT count(*) FROM statesvc.event"
    )
    assert await harness.rows(COLUMNS) == right
    assert await harness.value("SELECT count(*) FROM statesvc.notification") == told
    assert await harness.rows("SELECT actor, verb, target FROM statesvc.action") == [
        ("tester", "rebuild", "projection shipment")
    ]
    await tell_stories(harness, 30, seed=2)
    assert (await task(harness).compare())[1] == []


@pytest.mark.usefixtures("own_processes")
async def test_a_rollback_puts_the_old_table_back_with_what_came_since(
    harness: WorkerHarness,
) -> None:
    await tell_stories(harness, 10)
    await harness.as_owner(
        f"UPDATE statesvc.shipment SET reason = 'weather' WHERE shipment_id = '{shipment('P1')}'"
    )
    await task(harness).rebuild()
    assert (await task(harness).compare())[1] == []
    await harness.ingest({"number": "P2", "status": "delivered", "minute": 900})
    await harness.ingest({"number": "NEW", "status": "picked_up"})
    await task(harness).roll_back()
    assert (await task(harness).compare())[1] == [Drift(shipment("P1"), "acme", ("reason",))], (
        "as it was, but nothing lost"
    )
    await task(harness).roll_back()
    assert (await task(harness).compare())[1] == []
    await task(harness).finish()
    with pytest.raises(RebuildError, match="nothing to go back to"):
        await task(harness).roll_back()
    assert await harness.value("SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'touched%'") == 0


@pytest.mark.usefixtures("own_processes")
async def test_an_append_that_began_before_and_commits_after_the_reading_is_not_missed(
    harness: WorkerHarness,
) -> None:
    # the commit-order adversary: its rows are written, and invisible while the slices are read
    await tell_stories(harness, 10)
    async with await AsyncConnection.connect(harness.database.service_dsn) as adversary:
        change = "UPDATE statesvc.shipment SET version = version WHERE shipment_id = %s"
        await adversary.execute(change, (shipment("P1"),))
        running = asyncio.create_task(task(harness).rebuild())
        await harness.until(
            "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND mode ="
            " 'ShareRowExclusiveLock')",
            wanted=True,
        )
        await adversary.commit()
        await running
    assert (await task(harness).compare())[1] == []


@pytest.mark.usefixtures("own_processes")
@pytest.mark.parametrize("is_noted", [True, False])
async def test_what_changes_while_it_runs_is_folded_again(
    harness: WorkerHarness,
    monkeypatch: pytest.MonkeyPatch,
    is_noted: bool,  # noqa: FBT001
) -> None:
    await tell_stories(harness, 10)

    async def meanwhile(connection: Any, archive: History) -> None:
        await harness.ingest({"number": "P1", "status": "delivered", "minute": 950})
        await harness.ingest({"number": "NEW", "status": "picked_up"})
        if not is_noted:
            # the variant without notes loses what came
            await harness.as_owner("TRUNCATE statesvc.shipment_touched")
        await catch_up(connection, archive)

    monkeypatch.setattr(rebuild_run, "catch_up", meanwhile)
    await task(harness).rebuild()
    _, drift = await task(harness).compare()
    assert len(drift) == (0 if is_noted else 2)


@pytest.mark.usefixtures("own_processes")
async def test_a_rebuild_that_dies_leaves_the_live_table_alone_and_the_next_one_starts_over(
    harness: WorkerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    await tell_stories(harness, 10)
    right = await harness.rows(COLUMNS)

    async def die(*_: object, **__: object) -> None:
        raise InterruptedError

    monkeypatch.setattr(rebuild_run, "swap", die)
    with pytest.raises(InterruptedError):
        await task(harness).rebuild()
    assert await harness.rows(COLUMNS) == right
    monkeypatch.undo()
    await task(harness).rebuild()
    assert await harness.rows(COLUMNS) == right


async def test_two_rebuilds_at_once_are_refused(harness: WorkerHarness) -> None:
    async with await AsyncConnection.connect(harness.database.owner_dsn, autocommit=True) as other:
        await other.execute("SELECT pg_advisory_lock(hashtextextended('statesvc.rebuild', 0))")
        with pytest.raises(RebuildError, match="another rebuild"):
            await task(harness).rebuild()


async def test_both_tables_are_alike(harness: WorkerHarness) -> None:
    columns = (
        "SELECT attname, atttypid, atttypmod, attnotnull FROM pg_attribute WHERE attrelid ="
        " %s::regclass AND attnum > 0 ORDER BY 1"
    )
    indexes = (
        "SELECT indkey::text, indisunique FROM pg_index WHERE indrelid = %s::regclass ORDER BY 1"
    )
    rights = (
        "SELECT array_agg(privilege_type::text ORDER BY 1) FROM"
        " information_schema.role_table_grants WHERE table_name = %s"
    )
    options = "SELECT reloptions FROM pg_class WHERE oid = %s::regclass"
    for question in (columns, indexes, options):
        assert await harness.rows(question, "statesvc.shipment") == await harness.rows(
            question, "statesvc.shipment_spare"
        )
    assert await harness.rows(rights, "shipment") == await harness.rows(rights, "shipment_spare")


@pytest.mark.parametrize("log_bytes", [0, EVENT_BYTES * SLICE_EVENTS * 3, 10**15])
def test_slices_cover_the_key_space_without_overlap(log_bytes: int) -> None:
    pieces = slices(log_bytes)
    assert pieces[0].first == UUID(int=0)
    assert pieces[-1].last == UUID(int=2**128 - 1)
    assert all(after.first.int == before.last.int + 1 for before, after in pairwise(pieces))
    for place, piece in enumerate(pieces):
        assert place_of(piece.first, len(pieces)) == place_of(piece.last, len(pieces)) == place
