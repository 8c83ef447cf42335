"""Identity of a scan and of its number: what a scan carries stands in its own dedupe row, other
envelopes, later recipes and zones of an account find the scan again, and a number is shown as the
newest push prints it.
"""

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from events.carriers import CARRIERS
from events.identity.recipe import Recipe
from events.identity.recipes import RECIPES
from projections.row import rebuilt_row
from statesvc.log.json_compression import decompress_json
from statesvc.shipments.shipment_list import PrintedNumber, look_up_numbers
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


def shippo(status: str) -> bytes:
    event = {"status": "TRANSIT", "status_date": "2026-03-01T10:00:00Z"}
    return json.dumps({"tracking_number": "9", "eta": status, "tracking_history": [event]}).encode()


async def test_the_zone_stands_in_the_version_and_a_scan_is_not_appended_again_in_another(
    harness: WorkerHarness,
) -> None:
    zoned = {**CARRIERS, "shippo": CARRIERS["shippo"].in_zones("Asia/Ho_Chi_Minh")}
    harness.context = replace(harness.context, carriers=zoned)
    await harness.push(shippo("1"), carrier_id="shippo")
    await harness.work()
    harness.context = replace(harness.context, carriers=CARRIERS)
    await harness.push(shippo("2"), carrier_id="shippo")
    await harness.work()
    rows = await harness.rows(
        "SELECT normalizer, occurred_at, occurred_offset_seconds FROM statesvc.event"
    )
    assert rows == [("shippo@1+zAsia/Ho_Chi_Minh", datetime(2026, 3, 1, 3, tzinfo=UTC), 7 * 3600)]


BARE, LABEL = "340434161095002710", "00340434161095002710"


def push(number: str, minute: int) -> bytes:
    event = (
        f'<data name="piece-event" event-timestamp="30.03.2026 11:0{minute}" ice="LDTMV"'
        ' ric="MVMTV" standard-event-code="AA"/>'
    )
    piece = (
        f'<data name="piece-shipment" piece-code="{number}"><data'
        f' name="piece-event-list">{event}</data></data>'
    )
    return f'<data name="piece-shipment-list" code="0">{piece}</data>'.encode()


@pytest.mark.parametrize("prints", [(BARE, LABEL), (LABEL, BARE)])
async def test_the_zeros_of_a_label_are_shown_as_printed_last(
    harness: WorkerHarness, prints: tuple[str, str]
) -> None:
    harness.context = replace(harness.context, carriers=CARRIERS)
    for minute, number in enumerate(prints):
        await harness.push(push(number, minute), carrier_id="dhl_parcel_de")
        await harness.work()
    events = await harness.rows(
        "SELECT shipment_id, canonical FROM statesvc.event ORDER BY version"
    )
    history = [decompress_json(canonical) for _, canonical in events]
    assert [
        f'"tracking_number":"{number}"'.encode() in event
        for number, event in zip(prints, history, strict=True)
    ] == [True, True]
    for carrier_id in ("dhl_parcel_de", None):
        asked = [PrintedNumber(number, carrier_id) for number in (BARE, LABEL)]
        found = await look_up_numbers(harness.connection, asked)
        assert [[shipment["tracking_number"] for shipment in each] for each in found] == [
            [prints[-1]]
        ] * 2
    assert await harness.rows("SELECT number, tracking_number FROM statesvc.shipment") == [
        (BARE, prints[-1])
    ]
    rebuilt = rebuilt_row(events[0][0], history)
    assert (rebuilt.number, rebuilt.tracking_number) == (BARE, prints[-1])
