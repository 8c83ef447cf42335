"""Dedupe rows: what a scan carries stands in its own, and other envelopes and later recipes
find the scan by aliases.
"""

from dataclasses import replace

import pytest

from events.identity.recipe import Recipe
from events.identity.recipes import RECIPES
from tests.statesvc.worker.test_worker_together import process_after_the_other
from tests.world.worker_harness import CARRIER_ID, WorkerHarness, push_body

SCAN = {"number": "A", "status": "delivered", "type": "D", "code": "OK"}
FIRST = Recipe(time="local", place=("city", "country"))
CHANGED = Recipe(time="local", codes=("code",), also=(FIRST,))
WITH_IDS = replace(FIRST, also=(FIRST,))


async def test_what_a_scan_carries_needs_no_dedupe_row_of_its_own(harness: WorkerHarness) -> None:
    carrying = {**SCAN, "signed_by": "X", "estimated_delivery": "2026-03-02"}
    await harness.ingest(carrying)
    await harness.ingest(carrying, envelope=1)
    assert await harness.rows(
        "SELECT octet_length(facts_digest), octet_length(attribute_digests), alias_of FROM"
        " statesvc.event_key"
    ) == [(0, 16, None)]
    await harness.ingest({**carrying, "signed_by": "Y"}, envelope=2)
    await harness.ingest({**carrying, "signed_by": "Y"}, envelope=3)
    assert [event["kind"] for event in await harness.events("A")] == ["scan", "info"]
    assert await harness.value("SELECT count(*) FROM statesvc.event_key") == 2


async def test_a_changed_recipe_finds_what_the_old_one_appended(
    harness: WorkerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(RECIPES, CARRIER_ID, FIRST)
    await harness.ingest(SCAN, {**SCAN, "minute": 5, "signed_by": "X"})
    before = await harness.events("A")
    monkeypatch.setitem(RECIPES, CARRIER_ID, CHANGED)
    await harness.ingest(SCAN, {**SCAN, "minute": 5, "signed_by": "X"}, envelope=1)
    assert await harness.events("A") == before
    aliases = await harness.rows(
        "SELECT alias_of FROM statesvc.event_key WHERE alias_of IS NOT NULL"
    )
    assert sorted(aliases) == sorted((event["event_id"],) for event in before)
    monkeypatch.setitem(RECIPES, CARRIER_ID, replace(CHANGED, also=()))
    await harness.ingest(SCAN, {**SCAN, "minute": 5, "signed_by": "X"}, envelope=2)
    assert await harness.events("A") == before


async def test_a_signer_that_comes_by_an_alias_belongs_to_the_event_of_the_log_and_comes_once(
    harness: WorkerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(RECIPES, CARRIER_ID, FIRST)
    await harness.ingest(SCAN)
    monkeypatch.setitem(RECIPES, CARRIER_ID, CHANGED)
    await harness.ingest({**SCAN, "signed_by": "X"}, envelope=1)
    monkeypatch.setitem(RECIPES, CARRIER_ID, FIRST)
    await harness.ingest({**SCAN, "signed_by": "X"}, envelope=2)
    scan, info = await harness.events("A")
    assert (info["kind"], info["anchor"]) == ("info", scan["event_id"])


@pytest.mark.parametrize("mine_has_the_id", [True, False])
async def test_two_workers_append_one_scan_that_came_in_two_envelopes(
    harness: WorkerHarness, monkeypatch: pytest.MonkeyPatch, *, mine_has_the_id: bool
) -> None:
    monkeypatch.setitem(RECIPES, CARRIER_ID, WITH_IDS)
    bodies = [push_body({**SCAN, "native_id": "1"}), push_body(SCAN)]
    mine, theirs = bodies if mine_has_the_id else reversed(bodies)
    await process_after_the_other(harness, monkeypatch, mine, theirs)
    (event,) = await harness.events("A")
    rows = await harness.rows("SELECT event_id, alias_of FROM statesvc.event_key")
    assert len(rows) == (1 if mine_has_the_id else 2) or {alias_of for _, alias_of in rows} == {
        None,
        event["event_id"],
    }
    assert all((alias_of or event_id) == event["event_id"] for event_id, alias_of in rows)


async def test_facts_that_a_statement_leaves_out_contradict_nothing(harness: WorkerHarness) -> None:
    native = {**SCAN, "native_id": "1"}
    await harness.ingest(native)
    await harness.ingest({**native, "city": None}, envelope=1)
    assert await harness.value("SELECT count(*) FROM statesvc.conflict") == 0
    await harness.ingest({**native, "city": "Shelbyville"}, envelope=2)
    assert await harness.rows("SELECT octet_length(facts_digest) FROM statesvc.conflict") == [(33,)]
