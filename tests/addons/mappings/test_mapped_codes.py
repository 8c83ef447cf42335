"""Codes are read by the narrowest of the latest rows, or by their normalizer, and listed until a row says what they mean."""

import asyncio
import random
from typing import Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg import AsyncConnection

from events.event import Raw
from events.identity.ids import text_digest
from events.parsing.meanings import Meaning
from events.vocabulary import Kind, Reason, Status
from statesvc.addons.mappings.mapped_code import MappedCode, PrintedCode
from statesvc.addons.mappings.mapping_store import (
    NotMappedError,
    add_mapping,
    codes_by_category,
    current_mappings,
    teach,
)
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


MEANINGS = [
    None,
    Meaning(Kind.INFO),
    Meaning(Kind.SCAN, Status.LOST),
    Meaning(Kind.SCAN, Status.EXCEPTION, Reason.HELD),
    Meaning(Kind.SCAN, Status.DELIVERED),
]
CODES = st.builds(
    MappedCode,
    st.sampled_from(["a", "b"]),
    st.sampled_from([None, "T"]),
    st.sampled_from(["X", "Y"]),
    st.sampled_from([None, "R"]),
    st.sampled_from([None, "1", "2"]),
)


def expected(
    rows: list[tuple[MappedCode, Meaning | None]], carrier_id: str, raw: Raw, text: str | None
) -> Meaning | None:
    """Return the narrowest row that holds and matches; a reason is narrower than a text."""
    latest = dict(rows)
    matching = [
        (code.raw_reason is not None, code.raw_text is not None, meaning)
        for code, meaning in latest.items()
        if meaning is not None
        and code[:3] == (carrier_id, raw.type, raw.code)
        and code.raw_reason in {None, raw.reason}
        and code.raw_text in {None, text}
    ]
    return max(matching, key=lambda each: each[:2])[2] if matching else None


@pytest.mark.slow
@given(
    rows=st.lists(st.tuples(CODES, st.sampled_from(MEANINGS)), max_size=12),
    asked=st.tuples(CODES, st.booleans()),
    cut=st.integers(0, 12),
)
def test_rows_mean_what_the_model_says_however_they_are_taken_in(
    rows: list[tuple[MappedCode, Meaning | None]], asked: tuple[MappedCode, bool], cut: int
) -> None:
    def columns(revision: int, code: MappedCode, meaning: Meaning | None) -> tuple[Any, ...]:
        said = (
            (None, None, None)
            if meaning is None
            else (meaning.kind.value, meaning.status, meaning.reason)
        )
        return (revision, *code, *said)

    written = [columns(revision, *row) for revision, row in enumerate(rows, 1)]
    mappings = Mappings()
    mappings.take(written[:cut])
    mappings.take(written)
    about, _ = asked
    raw = Raw(type=about.raw_type, code=about.raw_code, reason=about.raw_reason)
    assert mappings.revision == len(rows)
    assert mappings.meaning_of(about.carrier_id, raw, about.raw_text) == expected(
        rows, about.carrier_id, raw, about.raw_text
    )


@pytest.mark.slow
async def test_taught_and_taken_back_at_random_events_are_read_as_the_model_says(
    harness: WorkerHarness,
) -> None:
    chance = random.Random(16)
    digest = harness.keyring.carrier_digest(CARRIER_ID)
    rows: list[tuple[MappedCode, Meaning | None]] = []
    for number in range(60):
        printed = PrintedCode(
            carrier_id=CARRIER_ID,
            raw_type="T",
            raw_code=chance.choice(["X", "Left with Ann", "Left  with ANN."]),
            raw_text=chance.choice([None, "Handed over.", "Not at home"]),
        )
        meaning = chance.choice(MEANINGS)
        in_effect = dict(rows).get(printed.clear(digest))
        try:
            await teach(
                harness.connection, harness.keyring, printed, meaning, why="a test", actor="tester"
            )
            rows.append((printed.clear(digest), meaning))
        except NotMappedError:
            assert (meaning, in_effect) == (None, None)
        code = chance.choice(["X", "LEFT WITH ANN"])
        said = chance.choice([None, "handed  OVER.", "not at home", "Something else"])
        await harness.ingest(
            {
                "number": f"N{number}",
                "kind": "unmapped",
                "code": code,
                **({"description": said} if said else {}),
            }
        )
        (event,) = await harness.events(f"N{number}")
        clear = PrintedCode(carrier_id=CARRIER_ID, raw_type="T", raw_code=code).clear(digest)
        raw = Raw(type=clear.raw_type, code=clear.raw_code)
        wanted = expected(
            rows, CARRIER_ID, raw, None if said is None else text_digest(said, digest)
        )
        assert (event["kind"], event.get("status"), event.get("reason")) == (
            ("unmapped", None, None)
            if wanted is None
            else (wanted.kind, wanted.status, wanted.reason)
        )
    held = {row.code for row in await current_mappings(harness.connection)}
    assert held == {code for code, meaning in dict(rows).items() if meaning is not None}
    texts = {
        stands for (stands,) in await harness.rows("SELECT stand_in FROM statesvc.mapped_text")
    }
    assert texts == {stands for code in held for stands in code.stand_ins}, (
        "a text goes with the last mapping that names it"
    )
    for table in ("code_mapping", "mapped_text", "action"):
        assert "ann" not in str(
            await harness.rows(f"SELECT t::text FROM statesvc.{table} t")
        ).lower().replace("channel", "")
