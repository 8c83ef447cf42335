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
from statesvc.shipments.rebuild.drift import MISSING, UNFOUNDED, Drift
from statesvc.shipments.rebuild.keyspace import EVENT_BYTES, SLICE_EVENTS, place_of, slices
from statesvc.shipments.rebuild.rebuild import Rebuild, RebuildError, catch_up
from tests.world.shop import Shop, says, shipment

COLUMNS = "SELECT * FROM statesvc.shipment ORDER BY shipment_id"


def task(shop: Shop, *, processes: int = 1) -> Rebuild:
    return Rebuild(
        owner_dsn=shop.database.owner_dsn,
        actor="tester",
        processes=processes,
        progress=lambda *_: None,
    )


async def tell_stories(shop: Shop, parcels: int, seed: int = 1) -> None:
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
            pushes.append(says(said))
    chance.shuffle(pushes)
    await shop.push(*pushes)
    await shop.work()


@pytest.mark.usefixtures("own_processes")
async def test_every_row_is_what_its_events_add_up_to(shop: Shop) -> None:
    await tell_stories(shop, 60)
    events, drift = await task(shop).compare()
    assert events == await shop.value("SELECT count(*) FROM statesvc.event")
    assert drift == []


@pytest.mark.usefixtures("own_processes")
async def test_planted_drift_is_found_and_named(shop: Shop) -> None:
    await tell_stories(shop, 5)
    await shop.as_owner(
        "UPDATE statesvc.shipment SET status = 'lost', attempts = 7 WHERE shipment_id ="
        f" '{shipment('P1')}'"
    )
    await shop.as_owner(f"DELETE FROM statesvc.shipment WHERE shipment_id = '{shipment('P2')}'")
    await shop.as_owner(
        f"UPDATE statesvc.shipment SET shipment_id = '{UUID(int=9)}' WHERE shipment_id ="
        f" '{shipment('P3')}'"
    )
    _, drift = await task(shop).compare()
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
    shop: Shop,
) -> None:
    await tell_stories(shop, 30)
    right = await shop.rows(COLUMNS)
    told = await shop.value("SELECT count(*) FROM statesvc.notification")
    await shop.as_owner("UPDATE statesvc.shipment SET status = 'lost'")
    assert await task(shop, processes=2).rebuild() == await shop.value(
        "SELECT count(*) FROM statesvc.event"
    )
    assert await shop.rows(COLUMNS) == right
    assert await shop.value("SELECT count(*) FROM statesvc.notification") == told
    assert await shop.rows("SELECT actor, verb, target FROM statesvc.action") == [
        ("tester", "rebuild", "projection shipment")
    ]
    await tell_stories(shop, 30, seed=2)
    assert (await task(shop).compare())[1] == []


@pytest.mark.usefixtures("own_processes")
async def test_a_rollback_puts_the_old_table_back_with_what_came_since(shop: Shop) -> None:
    await tell_stories(shop, 10)
    await shop.as_owner(
        f"UPDATE statesvc.shipment SET reason = 'weather' WHERE shipment_id = '{shipment('P1')}'"
    )
    await task(shop).rebuild()
    assert (await task(shop).compare())[1] == []
    await shop.say({"number": "P2", "status": "delivered", "minute": 900})
    await shop.say({"number": "NEW", "status": "picked_up"})
    await task(shop).roll_back()
    assert (await task(shop).compare())[1] == [Drift(shipment("P1"), "acme", ("reason",))], (
        "as it was, but nothing lost"
    )
    await task(shop).roll_back()
    assert (await task(shop).compare())[1] == []
    await task(shop).finish()
    with pytest.raises(RebuildError, match="nothing to go back to"):
        await task(shop).roll_back()
    assert await shop.value("SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'touched%'") == 0


@pytest.mark.usefixtures("own_processes")
async def test_an_append_that_began_before_and_commits_after_the_reading_is_not_missed(
    shop: Shop,
) -> None:
    # the commit-order adversary: its rows are written, and invisible while the slices are read
    await tell_stories(shop, 10)
    async with await AsyncConnection.connect(shop.database.service_dsn) as adversary:
        change = "UPDATE statesvc.shipment SET version = version WHERE shipment_id = %s"
        await adversary.execute(change, (shipment("P1"),))
        running = asyncio.create_task(task(shop).rebuild())
        await shop.until(
            "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND mode ="
            " 'ShareRowExclusiveLock')",
            wanted=True,
        )
        await adversary.commit()
        await running
    assert (await task(shop).compare())[1] == []


@pytest.mark.usefixtures("own_processes")
@pytest.mark.parametrize("is_noted", [True, False])
async def test_what_changes_while_it_runs_is_folded_again(
    shop: Shop,
    monkeypatch: pytest.MonkeyPatch,
    is_noted: bool,  # noqa: FBT001
) -> None:
    await tell_stories(shop, 10)

    async def meanwhile(connection: Any, archive: History) -> None:
        await shop.say({"number": "P1", "status": "delivered", "minute": 950})
        await shop.say({"number": "NEW", "status": "picked_up"})
        if not is_noted:
            # the variant without notes loses what came
            await shop.as_owner("TRUNCATE statesvc.shipment_touched")
        await catch_up(connection, archive)

    monkeypatch.setattr(rebuild_run, "catch_up", meanwhile)
    await task(shop).rebuild()
    _, drift = await task(shop).compare()
    assert len(drift) == (0 if is_noted else 2)


@pytest.mark.usefixtures("own_processes")
async def test_a_rebuild_that_dies_leaves_the_live_table_alone_and_the_next_one_starts_over(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    await tell_stories(shop, 10)
    right = await shop.rows(COLUMNS)

    async def die(*_: object, **__: object) -> None:
        raise InterruptedError

    monkeypatch.setattr(rebuild_run, "swap", die)
    with pytest.raises(InterruptedError):
        await task(shop).rebuild()
    assert await shop.rows(COLUMNS) == right
    monkeypatch.undo()
    await task(shop).rebuild()
    assert await shop.rows(COLUMNS) == right


async def test_two_rebuilds_at_once_are_refused(shop: Shop) -> None:
    async with await AsyncConnection.connect(shop.database.owner_dsn, autocommit=True) as other:
        await other.execute("SELECT pg_advisory_lock(hashtextextended('statesvc.rebuild', 0))")
        with pytest.raises(RebuildError, match="another rebuild"):
            await task(shop).rebuild()


async def test_both_tables_are_alike(shop: Shop) -> None:
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
        assert await shop.rows(question, "statesvc.shipment") == await shop.rows(
            question, "statesvc.shipment_spare"
        )
    assert await shop.rows(rights, "shipment") == await shop.rows(rights, "shipment_spare")


@pytest.mark.parametrize("log_bytes", [0, EVENT_BYTES * SLICE_EVENTS * 3, 10**15])
def test_slices_cover_the_key_space_without_overlap(log_bytes: int) -> None:
    pieces = slices(log_bytes)
    assert pieces[0].first == UUID(int=0)
    assert pieces[-1].last == UUID(int=2**128 - 1)
    assert all(after.first.int == before.last.int + 1 for before, after in pairwise(pieces))
    for place, piece in enumerate(pieces):
        assert place_of(piece.first, len(pieces)) == place_of(piece.last, len(pieces)) == place
