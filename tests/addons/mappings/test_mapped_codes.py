"""Learning codes: who reads by category is listed until a row says what the code means, and rows
become visible in their order.
"""

import asyncio

import psycopg
import pytest
from psycopg import AsyncConnection

from events.parsing.meanings import Meaning
from events.vocabulary import Kind, Reason, Status
from statesvc.addons.mappings.mapped_code import MappedCode
from statesvc.addons.mappings.mapping_store import add_mapping, codes_by_category, current_mappings
from statesvc.reading.code_mapping import Mappings
from tests.world.shell import Shell, use
from tests.world.worker_harness import CARRIER_ID, WorkerHarness

CODE = MappedCode(CARRIER_ID, "T", "CAT")
HELD = Meaning(Kind.SCAN, Status.EXCEPTION, Reason.HELD)


async def test_a_code_read_by_its_category_is_listed_until_it_is_mapped(
    harness: WorkerHarness,
) -> None:
    for minute in range(3):
        message_id = await harness.ingest(
            {
                "number": "A1",
                "status": "in_transit",
                "code": "CAT",
                "by_category": True,
                "minute": minute,
            }
        )
    await harness.ingest({"number": "A1", "status": "in_transit", "code": "KNOWN"})
    (found,) = await codes_by_category(harness.connection)
    assert tuple(found.values())[:5] == (*CODE[:3], 3, 1)
    assert found["message_ids"][0] == message_id
    await add_mapping(harness.connection, CODE, HELD, why="", actor="tester")
    assert await codes_by_category(harness.connection) == []
    await harness.ingest(
        {"number": "A2", "status": "in_transit", "code": "CAT", "by_category": True}
    )
    (event,) = await harness.events("A2")
    assert (event["status"], event["reason"], event["by_category"]) == ("exception", "held", False)


async def test_the_latest_row_of_a_code_holds_and_no_row_is_ever_changed(
    harness: WorkerHarness,
) -> None:
    await add_mapping(harness.connection, CODE, HELD, why="first", actor="tester")
    await add_mapping(harness.connection, CODE, Meaning(Kind.INFO), why="second", actor="tester")
    (current,) = await current_mappings(harness.connection)
    assert (current.revision, current.kind, current.why) == (2, "info", "second")
    for statement in (
        "UPDATE statesvc.code_mapping SET kind = NULL",
        "DELETE FROM statesvc.code_mapping",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            await harness.connection.execute(statement.encode())
        with pytest.raises(psycopg.Error, match="append-only"):
            await harness.as_owner(statement)


async def test_a_text_in_clear_is_never_stored(harness: WorkerHarness) -> None:
    text = MappedCode(CARRIER_ID, "T", "Left with Ann")
    with pytest.raises(ValueError, match="text"):
        await add_mapping(harness.connection, text, HELD, why="", actor="tester")


async def test_rows_added_at_once_become_visible_in_the_order_of_their_revisions(
    harness: WorkerHarness,
) -> None:
    async def add(number: int) -> None:
        async with await AsyncConnection.connect(
            harness.database.service_dsn, autocommit=True
        ) as connection:
            await add_mapping(
                connection, MappedCode(CARRIER_ID, None, f"C{number}"), HELD, why="", actor="tester"
            )

    seen = Mappings()
    adding = [asyncio.create_task(add(number)) for number in range(10)]
    while not all(task.done() for task in adding):
        await seen.refresh(harness.connection)
        assert len(seen.table) == seen.revision
        await asyncio.sleep(0)
    await seen.refresh(harness.connection)
    assert (len(seen.table), seen.revision) == (10, 10)


async def test_codes_are_read_as_mapped_while_the_add_on_is_off(
    harness: WorkerHarness, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    await add_mapping(harness.connection, CODE, HELD, why="", actor="tester")
    use(harness.database, monkeypatch)
    monkeypatch.setenv("STATESVC_ADDONS", "")
    await harness.ingest({"number": "A1", "status": "in_transit", "code": "CAT"})
    (event,) = await harness.events("A1")
    assert (event["status"], event["reason"]) == ("exception", "held")
    assert "needs the add-on mappings, which STATESVC_ADDONS leaves out" in await shell(
        "carriers", "mappings", exit_code=2
    )
    assert "needs the add-on mappings" in await shell(
        "renormalize", "--carrier", "ups", exit_code=2
    )
