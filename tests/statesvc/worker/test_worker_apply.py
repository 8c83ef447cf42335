"""Effects of a batch on the log and on the shipments, as a push is worked on."""

import json
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from events.carriers import CARRIERS
from statesvc.bodies.sealed_message import SILENT, seal_message
from statesvc.ingress.group_commit import put
from statesvc.log.json_compression import decompress_json
from statesvc.subscriptions.subscription_store import SubscriptionRequest, create
from tests.world.log_builder import MORNING
from tests.world.worker_harness import CARRIER_ID, WorkerHarness, push_body, shipment

SHIPMENT = """
    SELECT status, reason, flags, delivered_at, attempts, terminal, estimated_delivery, signed_by_event_id, last_event_at, status_since
    FROM statesvc.shipment WHERE shipment_id = %s"""
PICKED_UP = {"number": "A1", "status": "picked_up", "minute": 0, "code": "PU"}
MOVING = {"number": "A1", "status": "in_transit", "minute": 60, "code": "AR"}
OUT = {"number": "A1", "status": "out_for_delivery", "minute": 120, "code": "OT"}
DELIVERED = {"number": "A1", "status": "delivered", "minute": 180, "code": "DL"}


async def test_the_whole_history_again_is_all_duplicates_and_changes_nothing(
    harness: WorkerHarness,
) -> None:
    await harness.ingest(PICKED_UP, MOVING, DELIVERED)
    before = await harness.rows("SELECT * FROM statesvc.shipment")
    again = await harness.ingest(PICKED_UP, MOVING, DELIVERED, envelope=1)
    assert await harness.verdicts() == {"appended": 3, "duplicate": 3}
    assert await harness.rows("SELECT * FROM statesvc.shipment") == before
    assert await harness.value("SELECT count(*) FROM statesvc.batch") == 1, (
        "nothing was written, so there is no batch"
    )
    settled = "SELECT outcome, events, shipments FROM statesvc.message WHERE message_id = %s"
    assert await harness.rows(settled, again) == [("applied", 3, [shipment("A1")])]


async def test_the_first_snapshot_of_ten_scans_is_one_transition_named_by_its_last_event(
    harness: WorkerHarness,
) -> None:
    scans = [
        {"number": "A1", "status": "in_transit", "minute": n, "code": f"S{n}"} for n in range(9)
    ]
    await harness.ingest(*scans, DELIVERED)
    assert await harness.transitions("A1") == [("unknown", "delivered", 10)]
    assert [event["version"] for event in await harness.events("A1")] == list(range(1, 11))


async def test_each_message_of_a_batch_is_a_transition_of_its_own_in_the_order_of_the_inbox(
    harness: WorkerHarness,
) -> None:
    for body in (push_body(PICKED_UP), push_body(MOVING), push_body(OUT, DELIVERED)):
        await harness.push(body)
    assert await harness.work() == 3
    assert await harness.transitions("A1") == [
        ("unknown", "picked_up", 1),
        ("picked_up", "in_transit", 2),
        ("in_transit", "delivered", 4),
    ]
    assert await harness.value("SELECT count(*) FROM statesvc.batch") == 1


async def test_a_late_scan_folds_the_shipment_again(harness: WorkerHarness) -> None:
    await harness.ingest(PICKED_UP)
    await harness.ingest(DELIVERED)
    await harness.ingest(MOVING)
    assert await harness.transitions("A1") == [
        ("unknown", "picked_up", 1),
        ("picked_up", "delivered", 2),
    ]
    await harness.ingest({**OUT, "minute": 240})
    await harness.ingest({**DELIVERED, "minute": 300})
    late = (await harness.rows(SHIPMENT, shipment("A1")))[0]

    for place, scan in enumerate(
        (PICKED_UP, MOVING, DELIVERED, {**OUT, "minute": 240}, {**DELIVERED, "minute": 300})
    ):
        await harness.ingest({**scan, "number": "B1"}, envelope=place)
    assert (await harness.rows(SHIPMENT, shipment("B1")))[0] == late


async def _enriched(
    harness: WorkerHarness, number: str, *pushes: dict[str, Any]
) -> tuple[Any, ...]:
    for place, more in enumerate(pushes):
        await harness.ingest({**DELIVERED, "number": number, "stamp": "1", **more}, envelope=place)
    row = list((await harness.rows(SHIPMENT, shipment(number)))[0])
    row[7] = row[7] is not None
    return tuple(row)


async def test_a_signer_and_an_eta_that_come_later_end_in_the_same_shipment_as_those_that_came_with_the_scan(
    harness: WorkerHarness,
) -> None:
    told = {"signed_by": "EVANS", "estimated_delivery": "2026-03-02"}
    at_once = await _enriched(harness, "A1", told, {})
    after = await _enriched(harness, "B1", {}, told)
    one_by_one = await _enriched(
        harness, "C1", {"signed_by": "EVANS"}, {"estimated_delivery": "2026-03-02"}, told
    )
    assert at_once == after == one_by_one
    assert at_once[6:8] == ("2026-03-02", True)
    assert [event["kind"] for event in await harness.events("A1")] == ["scan"]
    assert [event["kind"] for event in await harness.events("B1")] == ["scan", "info", "info"]
    assert [event["kind"] for event in await harness.events("C1")] == ["scan", "info"]


async def test_an_enrichment_moves_no_status_and_sends_no_news(harness: WorkerHarness) -> None:
    await harness.ingest(DELIVERED)
    await harness.push(push_body({**DELIVERED, "signed_by": "EVANS"}))
    assert await harness.work() == 0
    assert len(await harness.transitions("A1")) == 1
    scan, info = await harness.events("A1")
    assert (info["anchor"], info["occurred_at"]) == (scan["event_id"], scan["occurred_at"])


async def test_a_conflict_is_stored_once_counted_and_moves_nothing(harness: WorkerHarness) -> None:
    first = {"number": "A1", "status": "in_transit", "native_id": "n1", "code": "AR"}
    other = {**first, "status": "delivered", "code": "DL"}
    await harness.ingest(first)
    before = await harness.rows("SELECT * FROM statesvc.shipment")
    for envelope in range(3):
        await harness.ingest(other, envelope=envelope)
    await harness.ingest({**other, "code": "DX"})
    assert await harness.verdicts() == {"appended": 1, "conflict": 4}
    assert await harness.rows("SELECT * FROM statesvc.shipment") == before
    assert await harness.value("SELECT count(*) FROM statesvc.conflict") == 2
    assert await harness.rows("SELECT seen FROM statesvc.conflict_key ORDER BY seen") == [
        (1,),
        (3,),
    ]


async def test_conflicts_that_come_together_are_counted_each(harness: WorkerHarness) -> None:
    first = {"number": "A1", "status": "in_transit", "native_id": "n1", "code": "AR"}
    other = {**first, "code": "DL"}
    await harness.push(push_body(first))
    await harness.push(push_body(other), push_body(other, envelope=1), push_body(other, envelope=2))
    await harness.work()
    assert await harness.value("SELECT count(*) FROM statesvc.conflict") == 1
    assert await harness.value("SELECT seen FROM statesvc.conflict_key") == 3
    await harness.push(push_body(other, envelope=3), push_body(other, envelope=4))
    await harness.work()
    assert await harness.value("SELECT count(*) FROM statesvc.conflict") == 1
    assert await harness.value("SELECT seen FROM statesvc.conflict_key") == 5


async def test_a_conflict_with_another_shipment_names_both(harness: WorkerHarness) -> None:
    await harness.ingest({"number": "A1", "status": "in_transit", "native_id": "n1"})
    await harness.ingest({"number": "B1", "status": "in_transit", "native_id": "n1"})
    assert await harness.rows("SELECT shipment_id, claimed_shipment_id FROM statesvc.conflict") == [
        (shipment("A1"), shipment("B1"))
    ]
    assert dict(await harness.rows("SELECT shipment_id, version FROM statesvc.stream")) == {
        shipment("A1"): 1,
        shipment("B1"): 0,
    }
    assert await harness.value(
        "SELECT shipments FROM statesvc.message ORDER BY message_id DESC LIMIT 1"
    ) == sorted(map(shipment, ("A1", "B1")))


async def test_an_unknown_code_waits_for_a_human_once_however_often_it_comes(
    harness: WorkerHarness,
) -> None:
    unknown = {"kind": "unmapped", "type": "Z", "code": "Q9"}
    await harness.push(*(push_body({**unknown, "number": f"N{n}"}) for n in range(5)))
    await harness.work()
    await harness.ingest({**unknown, "number": "N9"}, {**unknown, "number": "N9", "minute": 5})
    await harness.ingest({**unknown, "number": "N9", "code": "Q8"})
    letters = await harness.rows(
        "SELECT kind, cause, raw_type, raw_code FROM statesvc.dead_letter ORDER BY raw_code"
    )
    assert letters == [("code", "unknown_code", "Z", "Q8"), ("code", "unknown_code", "Z", "Q9")]
    assert await harness.value("SELECT count(*) FROM statesvc.event WHERE kind = 'unmapped'") == 8
    assert await harness.value("SELECT DISTINCT status FROM statesvc.shipment") == "unknown"


async def test_a_code_waits_once_for_each_status_that_its_texts_state_against_it(
    harness: WorkerHarness,
) -> None:
    code = {"kind": "unmapped", "type": "Z", "code": "Q9"}
    stated = (None, "delivered", "returning", "delivered")
    for minute, status in enumerate(stated):
        await harness.ingest({**code, "number": "N1", "minute": minute, "contradicted": status})
    letters = "SELECT cause, detail, count(*) FROM statesvc.dead_letter GROUP BY 1, 2 ORDER BY 2"
    assert await harness.rows(letters) == [
        ("unknown_code", "", 1),
        ("contradicts_text", "delivered", 1),
        ("contradicts_text", "returning", 1),
    ]


async def test_a_code_whose_category_was_read_waits_for_a_human_as_well(
    harness: WorkerHarness,
) -> None:
    await harness.ingest(
        {
            "number": "N1",
            "status": "in_transit",
            "type": "transit",
            "code": "NEW",
            "by_category": True,
        }
    )
    await harness.ingest(
        {"number": "N2", "status": "in_transit", "type": "transit", "code": "KNOWN"}
    )
    assert await harness.rows("SELECT raw_type, raw_code FROM statesvc.dead_letter") == [
        ("transit", "NEW")
    ]
    assert await harness.value("SELECT DISTINCT status FROM statesvc.shipment") == "in_transit"


async def test_rejected_members_wait_for_a_human_and_the_others_take_effect(
    harness: WorkerHarness,
) -> None:
    message_id = await harness.ingest(DELIVERED, rejected=2)
    assert await harness.rows(
        "SELECT kind, cause, message_id, detail FROM statesvc.dead_letter"
    ) == [
        (
            "message",
            "rejected_member",
            message_id,
            "/events/0: no code and no time; /events/1: no code and no time",
        )
    ]
    assert await harness.value("SELECT status FROM statesvc.shipment") == "delivered"
    assert await harness.value("SELECT outcome FROM statesvc.message") == "applied"


async def test_an_empty_message_is_settled_as_empty(harness: WorkerHarness) -> None:
    message_id = await harness.ingest()
    assert await harness.rows(
        "SELECT message_id, outcome, events, shipments FROM statesvc.message"
    ) == [(message_id, "empty", 0, [])]
    assert await harness.value("SELECT count(*) FROM statesvc.batch") == 0


async def test_unreadable_and_defective_messages_are_buried_without_a_word_of_their_bodies(
    harness: WorkerHarness,
) -> None:
    unreadable, defect, good = await harness.push(b"unreadable", b"defect", push_body(DELIVERED))
    lost = await harness.push(b"{}", carrier_id="gone")
    await harness.work()
    letters: list[tuple[UUID, str, str]] = await harness.rows(
        "SELECT message_id, cause, detail FROM statesvc.dead_letter ORDER BY cause DESC"
    )
    causes = {message_id: cause for message_id, cause, _ in letters}
    assert causes == {
        unreadable: "unreadable",
        defect: "normalizer_failed",
        lost[0]: "unknown_format",
    }
    assert not any("value of the body" in detail for _, _, detail in letters)
    assert await harness.rows("SELECT message_id FROM statesvc.message") == [(good,)]


@pytest.mark.parametrize(("part", "byte"), [("sealed", 60), ("commitment", 0)])
async def test_a_body_that_is_not_the_one_committed_to_is_never_read(
    harness: WorkerHarness, part: str, byte: int
) -> None:
    await harness.push(push_body(DELIVERED))
    await harness.as_owner(
        f"UPDATE statesvc.body SET {part} = set_byte({part}, {byte}, get_byte({part}, {byte}) # 1)"
    )
    await harness.work()
    assert await harness.rows("SELECT cause FROM statesvc.dead_letter") == [("unreadable",)]
    assert await harness.value("SELECT count(*) FROM statesvc.event") == 0


async def test_a_silent_message_moves_its_shipment_and_notifies_nobody(
    harness: WorkerHarness,
) -> None:
    request = SubscriptionRequest(url="https://subscriber.invalid/")
    await create(harness.connection, harness.keyring, request, actor="test", owner="bootstrap")
    body = push_body(PICKED_UP, MOVING)
    await put(
        harness.connection, [seal_message(harness.keyring, CARRIER_ID, body, json.dumps(SILENT))]
    )
    await harness.work()
    assert await harness.transitions("A1") == [("unknown", "in_transit", 2)]
    assert [event["notify"] for event in await harness.events("A1")] == [False, False]
    assert await harness.value("SELECT count(*) FROM statesvc.outbox") == 0
    await harness.ingest(DELIVERED)
    assert await harness.value("SELECT count(*) FROM statesvc.outbox") == 1


TIMES = "SELECT status, status_since, delivered_at, last_event_at FROM statesvc.shipment"


async def test_appended_events_are_counted_by_where_their_offset_comes_from(
    harness: WorkerHarness,
) -> None:
    scan = {"number": "N1", "status": "in_transit"}
    await harness.ingest(scan)
    await harness.ingest(scan, envelope=2)
    await harness.ingest({"number": "N1", "status": "delivered", "is_timed": False})
    counted = harness.context.telemetry.exposition().decode()
    assert 'statesvc_event_times_total{carrier="acme",tz_source="explicit"} 1.0' in counted
    assert 'statesvc_event_times_total{carrier="acme",tz_source="received"} 1.0' in counted


async def test_a_delivery_without_a_time_says_no_time_until_one_is_printed(
    harness: WorkerHarness,
) -> None:
    await harness.ingest({"number": "N1", "status": "in_transit"})
    await harness.ingest({"number": "N1", "status": "delivered", "minute": 60, "is_timed": False})
    assert await harness.rows(TIMES) == [("delivered", None, None, MORNING)]
    later = MORNING.replace(hour=10)
    await harness.ingest({"number": "N1", "status": "delivered", "minute": 120})
    assert await harness.rows(TIMES) == [("delivered", later, later, later)]


def evri(events: str) -> bytes:
    step = {"dateTime": "2026-03-02T10:04:00Z", "trackingStage": {"trackingStageCode": "4_COURIER"}}
    return json.dumps(
        {"results": [{"parcelIdentifiers": [{"type": "BARCODE", "value": "H1"}], events: [step]}]}
    ).encode()


async def test_a_list_under_another_name_is_a_dead_letter_and_counted_as_rejected(
    harness: WorkerHarness,
) -> None:
    harness.context = replace(harness.context, carriers=CARRIERS)
    await harness.push(evri("trackingEvents"), evri("steps"), b'{"results": []}', carrier_id="evri")
    await harness.work()
    counted = harness.context.telemetry.exposition().decode()
    for outcome in ("applied", "rejected", "empty"):
        assert (
            f'statesvc_messages_settled_total{{carrier="evri",outcome="{outcome}"}} 1.0' in counted
        )
    (detail,) = await harness.rows("SELECT detail FROM statesvc.dead_letter WHERE kind <> 'code'")
    assert detail == (
        "/results/0/trackingEvents: nothing is read here: the known list or object is absent",
    )


SCANS: list[dict[str, Any]] = [
    {"number": "P1", "status": "picked_up", "minute": 1, "code": "A"},
    {"number": "P1", "status": "in_transit", "minute": 5, "code": "B"},
    {"number": "P1", "status": "in_transit", "minute": 5, "code": "C"},
    {"number": "P1", "status": "delivered", "minute": 9, "code": "D"},
]


@pytest.mark.parametrize(
    "listed",
    [(0, 1, 2, 3), (3, 2, 1, 0), (1, 3, 0, 2)],
    ids=["oldest first", "newest first", "anyhow"],
)
async def test_versions_grow_with_time_and_the_transition_names_the_newest_scan(
    harness: WorkerHarness, listed: tuple[int, ...]
) -> None:
    await harness.ingest(*(SCANS[place] for place in listed))
    events = await harness.events("P1")
    assert [event["raw"]["code"] for event in events] == ["A", "B", "C", "D"]
    named = json.loads(
        decompress_json(await harness.value("SELECT canonical FROM statesvc.transition"))
    )
    assert (named["event_id"], named["sequence"]) == (events[-1]["event_id"], 4)
