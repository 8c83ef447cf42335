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
from tests.world.shop import CARRIER_ID, MORNING, Shop, says, shipment

SHIPMENT = """
    SELECT status, reason, flags, delivered_at, attempts, terminal, estimated_delivery, signed_by_event_id, last_event_at, status_since
    FROM statesvc.shipment WHERE shipment_id = %s"""
PICKED_UP = {"number": "A1", "status": "picked_up", "minute": 0, "code": "PU"}
MOVING = {"number": "A1", "status": "in_transit", "minute": 60, "code": "AR"}
OUT = {"number": "A1", "status": "out_for_delivery", "minute": 120, "code": "OT"}
DELIVERED = {"number": "A1", "status": "delivered", "minute": 180, "code": "DL"}


async def test_the_whole_history_again_is_all_duplicates_and_changes_nothing(shop: Shop) -> None:
    await shop.say(PICKED_UP, MOVING, DELIVERED)
    before = await shop.rows("SELECT * FROM statesvc.shipment")
    again = await shop.say(PICKED_UP, MOVING, DELIVERED, envelope=1)
    assert await shop.verdicts() == {"appended": 3, "duplicate": 3}
    assert await shop.rows("SELECT * FROM statesvc.shipment") == before
    assert await shop.value("SELECT count(*) FROM statesvc.batch") == 1, (
        "nothing was written, so there is no batch"
    )
    settled = "SELECT outcome, events, shipments FROM statesvc.message WHERE message_id = %s"
    assert await shop.rows(settled, again) == [("applied", 3, [shipment("A1")])]


async def test_the_first_snapshot_of_ten_scans_is_one_transition_named_by_its_last_event(
    shop: Shop,
) -> None:
    scans = [
        {"number": "A1", "status": "in_transit", "minute": n, "code": f"S{n}"} for n in range(9)
    ]
    await shop.say(*scans, DELIVERED)
    assert await shop.transitions("A1") == [("unknown", "delivered", 10)]
    assert [event["version"] for event in await shop.events("A1")] == list(range(1, 11))


async def test_each_message_of_a_batch_is_a_transition_of_its_own_in_the_order_of_the_inbox(
    shop: Shop,
) -> None:
    for body in (says(PICKED_UP), says(MOVING), says(OUT, DELIVERED)):
        await shop.push(body)
    assert await shop.work() == 3
    assert await shop.transitions("A1") == [
        ("unknown", "picked_up", 1),
        ("picked_up", "in_transit", 2),
        ("in_transit", "delivered", 4),
    ]
    assert await shop.value("SELECT count(*) FROM statesvc.batch") == 1


async def test_a_late_scan_folds_the_shipment_again(shop: Shop) -> None:
    await shop.say(PICKED_UP)
    await shop.say(DELIVERED)
    await shop.say(MOVING)
    assert await shop.transitions("A1") == [
        ("unknown", "picked_up", 1),
        ("picked_up", "delivered", 2),
    ]
    await shop.say({**OUT, "minute": 240})
    await shop.say({**DELIVERED, "minute": 300})
    late = (await shop.rows(SHIPMENT, shipment("A1")))[0]

    for place, scan in enumerate(
        (PICKED_UP, MOVING, DELIVERED, {**OUT, "minute": 240}, {**DELIVERED, "minute": 300})
    ):
        await shop.say({**scan, "number": "B1"}, envelope=place)
    assert (await shop.rows(SHIPMENT, shipment("B1")))[0] == late


async def _enriched(shop: Shop, number: str, *pushes: dict[str, Any]) -> tuple[Any, ...]:
    for place, more in enumerate(pushes):
        await shop.say({**DELIVERED, "number": number, "stamp": "1", **more}, envelope=place)
    row = list((await shop.rows(SHIPMENT, shipment(number)))[0])
    row[7] = row[7] is not None
    return tuple(row)


async def test_a_signer_and_an_eta_that_come_later_end_in_the_same_shipment_as_those_that_came_with_the_scan(
    shop: Shop,
) -> None:
    told = {"signed_by": "EVANS", "estimated_delivery": "2026-03-02"}
    at_once = await _enriched(shop, "A1", told, {})
    after = await _enriched(shop, "B1", {}, told)
    one_by_one = await _enriched(
        shop, "C1", {"signed_by": "EVANS"}, {"estimated_delivery": "2026-03-02"}, told
    )
    assert at_once == after == one_by_one
    assert at_once[6:8] == ("2026-03-02", True)
    assert [event["kind"] for event in await shop.events("A1")] == ["scan"]
    assert [event["kind"] for event in await shop.events("B1")] == ["scan", "info", "info"]
    assert [event["kind"] for event in await shop.events("C1")] == ["scan", "info"]


async def test_an_enrichment_moves_no_status_and_sends_no_news(shop: Shop) -> None:
    await shop.say(DELIVERED)
    await shop.push(says({**DELIVERED, "signed_by": "EVANS"}))
    assert await shop.work() == 0
    assert len(await shop.transitions("A1")) == 1
    scan, info = await shop.events("A1")
    assert (info["anchor"], info["occurred_at"]) == (scan["event_id"], scan["occurred_at"])


async def test_a_conflict_is_stored_once_counted_and_moves_nothing(shop: Shop) -> None:
    first = {"number": "A1", "status": "in_transit", "native_id": "n1", "code": "AR"}
    other = {**first, "status": "delivered", "code": "DL"}
    await shop.say(first)
    before = await shop.rows("SELECT * FROM statesvc.shipment")
    for envelope in range(3):
        await shop.say(other, envelope=envelope)
    await shop.say({**other, "code": "DX"})
    assert await shop.verdicts() == {"appended": 1, "conflict": 4}
    assert await shop.rows("SELECT * FROM statesvc.shipment") == before
    assert await shop.value("SELECT count(*) FROM statesvc.conflict") == 2
    assert await shop.rows("SELECT seen FROM statesvc.conflict_key ORDER BY seen") == [(1,), (3,)]


async def test_conflicts_that_come_together_are_counted_each(shop: Shop) -> None:
    first = {"number": "A1", "status": "in_transit", "native_id": "n1", "code": "AR"}
    other = {**first, "code": "DL"}
    await shop.push(says(first))
    await shop.push(says(other), says(other, envelope=1), says(other, envelope=2))
    await shop.work()
    assert await shop.value("SELECT count(*) FROM statesvc.conflict") == 1
    assert await shop.value("SELECT seen FROM statesvc.conflict_key") == 3
    await shop.push(says(other, envelope=3), says(other, envelope=4))
    await shop.work()
    assert await shop.value("SELECT count(*) FROM statesvc.conflict") == 1
    assert await shop.value("SELECT seen FROM statesvc.conflict_key") == 5


async def test_a_conflict_with_another_shipment_names_both(shop: Shop) -> None:
    await shop.say({"number": "A1", "status": "in_transit", "native_id": "n1"})
    await shop.say({"number": "B1", "status": "in_transit", "native_id": "n1"})
    assert await shop.rows("SELECT shipment_id, claimed_shipment_id FROM statesvc.conflict") == [
        (shipment("A1"), shipment("B1"))
    ]
    assert dict(await shop.rows("SELECT shipment_id, version FROM statesvc.stream")) == {
        shipment("A1"): 1,
        shipment("B1"): 0,
    }
    assert await shop.value(
        "SELECT shipments FROM statesvc.message ORDER BY message_id DESC LIMIT 1"
    ) == sorted(map(shipment, ("A1", "B1")))


async def test_an_unknown_code_waits_for_a_human_once_however_often_it_comes(shop: Shop) -> None:
    unknown = {"kind": "unmapped", "type": "Z", "code": "Q9"}
    await shop.push(*(says({**unknown, "number": f"N{n}"}) for n in range(5)))
    await shop.work()
    await shop.say({**unknown, "number": "N9"}, {**unknown, "number": "N9", "minute": 5})
    await shop.say({**unknown, "number": "N9", "code": "Q8"})
    letters = await shop.rows(
        "SELECT kind, cause, raw_type, raw_code FROM statesvc.dead_letter ORDER BY raw_code"
    )
    assert letters == [("code", "unknown_code", "Z", "Q8"), ("code", "unknown_code", "Z", "Q9")]
    assert await shop.value("SELECT count(*) FROM statesvc.event WHERE kind = 'unmapped'") == 8
    assert await shop.value("SELECT DISTINCT status FROM statesvc.shipment") == "unknown"


async def test_a_code_waits_once_for_each_status_that_its_texts_state_against_it(
    shop: Shop,
) -> None:
    code = {"kind": "unmapped", "type": "Z", "code": "Q9"}
    stated = (None, "delivered", "returning", "delivered")
    for minute, status in enumerate(stated):
        await shop.say({**code, "number": "N1", "minute": minute, "contradicted": status})
    letters = "SELECT cause, detail, count(*) FROM statesvc.dead_letter GROUP BY 1, 2 ORDER BY 2"
    assert await shop.rows(letters) == [
        ("unknown_code", "", 1),
        ("contradicts_text", "delivered", 1),
        ("contradicts_text", "returning", 1),
    ]


async def test_a_code_whose_category_was_read_waits_for_a_human_as_well(shop: Shop) -> None:
    await shop.say(
        {
            "number": "N1",
            "status": "in_transit",
            "type": "transit",
            "code": "NEW",
            "by_category": True,
        }
    )
    await shop.say({"number": "N2", "status": "in_transit", "type": "transit", "code": "KNOWN"})
    assert await shop.rows("SELECT raw_type, raw_code FROM statesvc.dead_letter") == [
        ("transit", "NEW")
    ]
    assert await shop.value("SELECT DISTINCT status FROM statesvc.shipment") == "in_transit"


async def test_rejected_members_wait_for_a_human_and_the_others_take_effect(shop: Shop) -> None:
    message_id = await shop.say(DELIVERED, rejected=2)
    assert await shop.rows("SELECT kind, cause, message_id, detail FROM statesvc.dead_letter") == [
        (
            "message",
            "rejected_member",
            message_id,
            "/events/0: no code and no time; /events/1: no code and no time",
        )
    ]
    assert await shop.value("SELECT status FROM statesvc.shipment") == "delivered"
    assert await shop.value("SELECT outcome FROM statesvc.message") == "applied"


async def test_an_empty_message_is_settled_as_empty(shop: Shop) -> None:
    message_id = await shop.say()
    assert await shop.rows(
        "SELECT message_id, outcome, events, shipments FROM statesvc.message"
    ) == [(message_id, "empty", 0, [])]
    assert await shop.value("SELECT count(*) FROM statesvc.batch") == 0


async def test_unreadable_and_defective_messages_are_buried_without_a_word_of_their_bodies(
    shop: Shop,
) -> None:
    unreadable, defect, good = await shop.push(b"unreadable", b"defect", says(DELIVERED))
    lost = await shop.push(b"{}", carrier_id="gone")
    await shop.work()
    letters: list[tuple[UUID, str, str]] = await shop.rows(
        "SELECT message_id, cause, detail FROM statesvc.dead_letter ORDER BY cause DESC"
    )
    causes = {message_id: cause for message_id, cause, _ in letters}
    assert causes == {
        unreadable: "unreadable",
        defect: "normalizer_failed",
        lost[0]: "unknown_format",
    }
    assert not any("value of the body" in detail for _, _, detail in letters)
    assert await shop.rows("SELECT message_id FROM statesvc.message") == [(good,)]


async def test_a_body_that_was_changed_in_the_database_is_never_read(shop: Shop) -> None:
    await shop.push(says(DELIVERED))
    await shop.as_owner(
        "UPDATE statesvc.body SET sealed = set_byte(sealed, 60, get_byte(sealed, 60) # 1)"
    )
    await shop.work()
    assert await shop.rows("SELECT cause FROM statesvc.dead_letter") == [("unreadable",)]
    assert await shop.value("SELECT count(*) FROM statesvc.event") == 0


async def test_a_body_that_is_not_the_one_committed_to_is_buried(shop: Shop) -> None:
    await shop.push(says(DELIVERED))
    await shop.as_owner(
        "UPDATE statesvc.body SET commitment = set_byte(commitment, 0, get_byte(commitment, 0) # 1)"
    )
    await shop.work()
    assert await shop.rows("SELECT cause FROM statesvc.dead_letter") == [("unreadable",)]


async def test_one_notification_for_each_change_and_subscription(shop: Shop) -> None:
    await shop.connection.execute(
        "INSERT INTO statesvc.subscription (subscription_id, created_at, created_by, owner, url,"
        " sealed_secrets) SELECT gen_random_uuid(), now(), 'test', 'bootstrap',"
        " 'https://subscriber.invalid', '{}' FROM generate_series(1, 2)"
    )
    await shop.say(PICKED_UP, MOVING)
    await shop.say(PICKED_UP, MOVING, DELIVERED, envelope=1)
    told = await shop.rows(
        "SELECT sequence, type, from_status, to_status, count(*) FROM statesvc.notification GROUP"
        " BY 1, 2, 3, 4 ORDER BY 1"
    )
    assert told == [
        (2, "shipment.status_changed", "unknown", "in_transit", 2),
        (3, "shipment.status_changed", "in_transit", "delivered", 2),
    ]
    assert await shop.value("SELECT count(*) FROM statesvc.outbox") == 4


async def test_a_silent_message_moves_its_shipment_and_notifies_nobody(shop: Shop) -> None:
    request = SubscriptionRequest(url="https://subscriber.invalid/")
    await create(shop.connection, shop.keyring, request, actor="test", owner="bootstrap")
    body = says(PICKED_UP, MOVING)
    await put(shop.connection, [seal_message(shop.keyring, CARRIER_ID, body, json.dumps(SILENT))])
    await shop.work()
    assert await shop.transitions("A1") == [("unknown", "in_transit", 2)]
    assert [event["notify"] for event in await shop.events("A1")] == [False, False]
    assert await shop.value("SELECT count(*) FROM statesvc.outbox") == 0
    await shop.say(DELIVERED)
    assert await shop.value("SELECT count(*) FROM statesvc.outbox") == 1


TIMES = "SELECT status, status_since, delivered_at, last_event_at FROM statesvc.shipment"


async def test_appended_events_are_counted_by_where_their_offset_comes_from(shop: Shop) -> None:
    scan = {"number": "N1", "status": "in_transit"}
    await shop.say(scan)
    await shop.say(scan, envelope=2)
    await shop.say({"number": "N1", "status": "delivered", "is_timed": False})
    counted = shop.context.telemetry.exposition().decode()
    assert 'statesvc_event_times_total{carrier="acme",tz_source="explicit"} 1.0' in counted
    assert 'statesvc_event_times_total{carrier="acme",tz_source="received"} 1.0' in counted


async def test_a_delivery_without_a_time_says_no_time_until_one_is_printed(shop: Shop) -> None:
    await shop.say({"number": "N1", "status": "in_transit"})
    await shop.say({"number": "N1", "status": "delivered", "minute": 60, "is_timed": False})
    assert await shop.rows(TIMES) == [("delivered", None, None, MORNING)]
    later = MORNING.replace(hour=10)
    await shop.say({"number": "N1", "status": "delivered", "minute": 120})
    assert await shop.rows(TIMES) == [("delivered", later, later, later)]


def evri(events: str) -> bytes:
    step = {"dateTime": "2026-03-02T10:04:00Z", "trackingStage": {"trackingStageCode": "4_COURIER"}}
    return json.dumps(
        {"results": [{"parcelIdentifiers": [{"type": "BARCODE", "value": "H1"}], events: [step]}]}
    ).encode()


async def test_a_list_under_another_name_is_a_dead_letter_and_counted_as_rejected(
    shop: Shop,
) -> None:
    shop.context = replace(shop.context, carriers=CARRIERS)
    await shop.push(evri("trackingEvents"), evri("steps"), b'{"results": []}', carrier_id="evri")
    await shop.work()
    counted = shop.context.telemetry.exposition().decode()
    for outcome in ("applied", "rejected", "empty"):
        assert (
            f'statesvc_messages_settled_total{{carrier="evri",outcome="{outcome}"}} 1.0' in counted
        )
    (detail,) = await shop.rows("SELECT detail FROM statesvc.dead_letter WHERE kind <> 'code'")
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
    "listed", [(0, 1, 2, 3), (3, 2, 1, 0)], ids=["oldest first", "newest first"]
)
async def test_versions_grow_with_time_and_the_transition_names_the_newest_scan(
    shop: Shop, listed: tuple[int, ...]
) -> None:
    await shop.say(*(SCANS[place] for place in listed))
    events = await shop.events("P1")
    assert [event["raw"]["code"] for event in events] == ["A", "B", "C", "D"]
    named = json.loads(
        decompress_json(await shop.value("SELECT canonical FROM statesvc.transition"))
    )
    assert (named["event_id"], named["sequence"]) == (events[-1]["event_id"], 4)


async def test_scans_that_are_listed_anyhow_are_sorted_and_keep_their_order_within_an_instant(
    shop: Shop,
) -> None:
    await shop.say(*(SCANS[place] for place in (1, 3, 0, 2)))
    assert [event["raw"]["code"] for event in await shop.events("P1")] == ["A", "B", "C", "D"]
