"""Dedupe rows: what a scan carries stands in its own, and other envelopes and later recipes
find the scan by aliases.
"""

from dataclasses import replace

import pytest

from events.identity.recipe import Recipe
from events.identity.recipes import RECIPES
from tests.statesvc.worker.test_worker_together import process_after_the_other
from tests.world.shop import CARRIER_ID, Shop, says

SCAN = {"number": "A", "status": "delivered", "type": "D", "code": "OK"}
FIRST = Recipe(time="local", place=("city", "country"))
CHANGED = Recipe(time="local", codes=("code",), also=(FIRST,))
WITH_IDS = replace(FIRST, also=(FIRST,))


async def test_what_a_scan_carries_needs_no_dedupe_row_of_its_own(shop: Shop) -> None:
    carrying = {**SCAN, "signed_by": "X", "estimated_delivery": "2026-03-02"}
    await shop.say(carrying)
    await shop.say(carrying, envelope=1)
    assert await shop.rows(
        "SELECT octet_length(facts_digest), octet_length(attribute_digests), alias_of FROM"
        " statesvc.event_key"
    ) == [(0, 16, None)]
    await shop.say({**carrying, "signed_by": "Y"}, envelope=2)
    await shop.say({**carrying, "signed_by": "Y"}, envelope=3)
    assert [event["kind"] for event in await shop.events("A")] == ["scan", "info"]
    assert await shop.value("SELECT count(*) FROM statesvc.event_key") == 2


async def test_a_changed_recipe_finds_what_the_old_one_appended(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(RECIPES, CARRIER_ID, FIRST)
    await shop.say(SCAN, {**SCAN, "minute": 5, "signed_by": "X"})
    before = await shop.events("A")
    monkeypatch.setitem(RECIPES, CARRIER_ID, CHANGED)
    await shop.say(SCAN, {**SCAN, "minute": 5, "signed_by": "X"}, envelope=1)
    assert await shop.events("A") == before
    aliases = await shop.rows("SELECT alias_of FROM statesvc.event_key WHERE alias_of IS NOT NULL")
    assert sorted(aliases) == sorted((event["event_id"],) for event in before)
    monkeypatch.setitem(RECIPES, CARRIER_ID, replace(CHANGED, also=()))
    await shop.say(SCAN, {**SCAN, "minute": 5, "signed_by": "X"}, envelope=2)
    assert await shop.events("A") == before


async def test_a_signer_that_comes_by_an_alias_belongs_to_the_event_of_the_log_and_comes_once(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(RECIPES, CARRIER_ID, FIRST)
    await shop.say(SCAN)
    monkeypatch.setitem(RECIPES, CARRIER_ID, CHANGED)
    await shop.say({**SCAN, "signed_by": "X"}, envelope=1)
    monkeypatch.setitem(RECIPES, CARRIER_ID, FIRST)
    await shop.say({**SCAN, "signed_by": "X"}, envelope=2)
    scan, info = await shop.events("A")
    assert (info["kind"], info["anchor"]) == ("info", scan["event_id"])


@pytest.mark.parametrize("mine_has_the_id", [True, False])
async def test_two_workers_append_one_scan_that_came_in_two_envelopes(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, *, mine_has_the_id: bool
) -> None:
    monkeypatch.setitem(RECIPES, CARRIER_ID, WITH_IDS)
    bodies = [says({**SCAN, "native_id": "1"}), says(SCAN)]
    mine, theirs = bodies if mine_has_the_id else reversed(bodies)
    await process_after_the_other(shop, monkeypatch, mine, theirs)
    (event,) = await shop.events("A")
    rows = await shop.rows("SELECT event_id, alias_of FROM statesvc.event_key")
    assert len(rows) == (1 if mine_has_the_id else 2) or {alias_of for _, alias_of in rows} == {
        None,
        event["event_id"],
    }
    assert all((alias_of or event_id) == event["event_id"] for event_id, alias_of in rows)


async def test_facts_that_a_statement_leaves_out_contradict_nothing(shop: Shop) -> None:
    native = {**SCAN, "native_id": "1"}
    await shop.say(native)
    await shop.say({**native, "city": None}, envelope=1)
    assert await shop.value("SELECT count(*) FROM statesvc.conflict") == 0
    await shop.say({**native, "city": "Shelbyville"}, envelope=2)
    assert await shop.rows("SELECT octet_length(facts_digest) FROM statesvc.conflict") == [(33,)]
