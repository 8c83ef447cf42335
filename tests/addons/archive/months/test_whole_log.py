"""Readers of the whole log, and searches by something else than a number, miss
nothing of an archived month.
"""

from datetime import UTC, datetime
from typing import Any

import pytest
from psycopg import AsyncConnection

from statesvc.log.transitions import read_transitions
from statesvc.shipments.rebuild.rebuild import Rebuild
from tests.world.log_archivist import OLD, Archivist, shipment


@pytest.mark.usefixtures("two_months")
async def test_the_stream_resumes_from_an_archived_index(archivist: Archivist) -> None:
    head = await archivist.log.seal()

    async def output(step: int) -> list[Any]:
        archive, size = archivist.archive, head.tree_size
        return [
            transition
            for begin in range(0, size, step)
            for transition in await read_transitions(
                archivist.connection, begin=begin, end=min(begin + step, size), archive=archive
            )
        ]

    before = await output(1000)
    await archivist.archived()
    assert await output(1000) == before
    assert await output(3) == before


@pytest.mark.usefixtures("two_months")
async def test_a_rebuild_folds_archive_and_tables(archivist: Archivist) -> None:
    task = Rebuild(
        owner_dsn=archivist.database.owner_dsn,
        actor="test",
        processes=2,
        progress=lambda *_: None,
        archive=archivist.archive,
    )
    events, drift = await task.compare()
    assert drift == []
    await archivist.archived()
    assert await task.compare() == (events, [])
    assert await task.rebuild() == events
    assert await task.compare() == (events, [])
    rows = await archivist.log.rows("SELECT shipment_id FROM statesvc.shipment")
    assert {shipment(number) for number in OLD} <= {shipment_id for (shipment_id,) in rows}


@pytest.mark.usefixtures("two_months")
async def test_a_period_brings_back_all_that_was_said_of_in_it(archivist: Archivist) -> None:
    month = await archivist.archived()
    await archivist.archive.restore_period(
        archivist.connection, month.begins, datetime(2040, 1, 1, tzinfo=UTC)
    )
    for number in OLD:
        count = await archivist.log.rows(
            f"SELECT count(*) FROM statesvc.event WHERE shipment_id = '{shipment(number)}'"
        )
        assert count[0][0] >= 5, number


@pytest.mark.usefixtures("two_months")
async def test_a_shipment_that_began_later_asks_for_nothing(archivist: Archivist) -> None:
    await archivist.archived()
    await archivist.archive.restore_shipments(archivist.connection, [shipment("1Z0007")])
    assert shipment("1Z0007") not in await archivist.residents()


@pytest.mark.usefixtures("two_months")
async def test_the_owner_and_the_service_read_the_same(archivist: Archivist) -> None:
    await archivist.archived()
    async with await AsyncConnection.connect(
        archivist.database.owner_dsn, autocommit=True
    ) as owner:
        await archivist.archive.restore_shipments(owner, [shipment("1Z0001")])
    assert (
        len(
            await archivist.log.rows(
                f"SELECT FROM statesvc.event WHERE shipment_id = '{shipment('1Z0001')}'"
            )
        )
        == 5
    )
