"""Teaching a code over the API: seen with samples, previewed, mapped, read again; and what is
refused.
"""

import asyncio
import json
from typing import Any

import pytest

from statesvc.addons.mappings.preview import MappingPreview
from statesvc.api.call_limits import CallLimits
from tests.world.worker_harness import WorkerHarness

MAPPINGS = "/v1/carriers/royalmail/mappings"
LESSON: dict[str, Any] = {
    "raw_code": "EVZZ9",
    "meaning": {"kind": "scan", "status": "delivery_attempted", "reason": "consignee_absent"},
}


def royalmail(number: str, code: str, text: str = "Left with Zaphod") -> bytes:
    event = {
        "eventCode": code,
        "eventName": text,
        "eventDateTime": "2026-03-02T10:04:00+00:00",
        "locationName": "Leeds DO",
    }
    return json.dumps({"mailPieces": {"mailPieceId": number, "events": [event]}}).encode()


def australiapost(number: str, words: str) -> bytes:
    event = {"date": "2026-03-02T10:04:00+11:00", "description": words, "location": "SYDNEY NSW"}
    article = {"article_id": number, "events": [event]}
    return json.dumps(
        {"tracking_results": [{"tracking_id": number, "trackable_items": [article]}]}
    ).encode()


def easypost(number: str, status: str, detail: str) -> bytes:
    scan = {
        "datetime": "2026-03-02T10:04:00Z",
        "status": status,
        "status_detail": detail,
        "message": "Seen",
        "tracking_location": {},
    }
    tracker = {
        "object": "Tracker",
        "tracking_code": number,
        "status": status,
        "carrier": "USPS",
        "tracking_details": [scan],
    }
    return json.dumps(
        {"object": "Event", "description": "tracker.updated", "result": tracker}
    ).encode()


async def push_unknown(royal: WorkerHarness, count: int) -> None:
    await royal.push(
        *(royalmail(f"AB{number}GB", "EVZZ9") for number in range(count)), carrier_id="royalmail"
    )
    await royal.work()


async def post(api: Any, path: str, scopes: str = "ops", **document: Any) -> Any:
    return await api.call("POST", path, scopes=scopes, json=document)


async def get(api: Any, path: str, scopes: str = "ops") -> Any:
    return await api.get(path, scopes=scopes)


async def statuses(royal: WorkerHarness) -> dict[str, int]:
    return dict(await royal.rows("SELECT status, count(*)::int FROM statesvc.shipment GROUP BY 1"))


async def test_a_code_is_seen_previewed_mapped_and_read_again(
    api: Any, royal: WorkerHarness
) -> None:
    await push_unknown(royal, 3)
    (unknown,) = (await get(api, "/v1/unmapped-codes?carrier_id=royalmail")).body["items"]
    assert (unknown["raw_type"], unknown["raw_code"], unknown["events"], unknown["mapped"]) == (
        None,
        "EVZZ9",
        3,
        None,
    )
    samples = await get(
        api, "/v1/unmapped-codes/samples?carrier_id=royalmail&raw_code=EVZZ9&limit=2"
    )
    assert [(each["raw_code"], each["description"]) for each in samples.body["items"]] == [
        ("EVZZ9", None)
    ] * 2
    assert "Zaphod" not in json.dumps(samples.body)
    path = "/v1/unmapped-codes/samples?carrier_id=royalmail&raw_code=EVZZ9&include=personal"
    assert (await get(api, path)).status == 403
    assert {each["description"] for each in (await get(api, path, "ops pii")).body["items"]} == {
        "Left with Zaphod"
    }

    previewed = await post(api, f"{MAPPINGS}/preview", **LESSON)
    assert previewed.status == 200, previewed.body
    preview = MappingPreview.model_validate(previewed.body)
    assert (preview.replaces, preview.events, len(preview.samples)) == (0, 3, 3)
    assert "Zaphod" not in json.dumps(previewed.body)
    assert (previewed.body["previewed_messages"], previewed.body["moved"]) == (0, []), "as 0.1.0"
    assert await royal.value("SELECT count(*) FROM statesvc.code_mapping") == 0

    taught = await post(api, MAPPINGS, **LESSON, why="their letter", replaces=preview.replaces)
    assert taught.status == 201, taught.body
    assert (taught.body["revision"], taught.body["meaning"]["status"], taught.body["shipped"]) == (
        1,
        "delivery_attempted",
        None,
    )
    assert (
        taught.body["added_by"].startswith("key:"),
        taught.body["why"],
        taught.body["redundant"],
    ) == (True, "their letter", False)
    await push_unknown(royal, 4)
    assert await statuses(royal) == {"unknown": 3, "delivery_attempted": 1}
    versions = "SELECT normalizer FROM statesvc.event WHERE kind = 'scan'"
    assert await royal.value(versions) == "royalmail@1+m1"
    (unknown,) = (await get(api, "/v1/unmapped-codes")).body["items"]
    assert unknown["mapped"]["status"] == "delivery_attempted"

    done = await post(api, f"{MAPPINGS}/1/renormalize", why="their letter")
    assert done.status == 200, done.body
    assert (
        done.body["messages"],
        done.body["corrected"],
        done.body["done"],
        done.body["obstacle"],
    ) == (4, 3, True, None)
    assert await statuses(royal) == {"delivery_attempted": 4}
    assert (await get(api, "/v1/unmapped-codes")).body["items"] == []
    recorded = await royal.rows(
        "SELECT convert_from(canonical, 'UTF8')::jsonb FROM statesvc.action ORDER BY batch_id"
    )
    found = [
        (action["verb"], action["actor"][:4])
        for (action,) in recorded
        if action["verb"] in {"map_code", "renormalize"}
    ]
    assert found == [("map_code", "key:"), ("renormalize", "key:")]

    taken = await post(
        api, MAPPINGS, raw_code="EVZZ9", meaning=None, why="wrong after all", replaces=1
    )
    assert (taken.status, taken.body["revision"], taken.body["meaning"]) == (201, 2, None)
    await post(api, f"{MAPPINGS}/2/renormalize")
    assert await statuses(royal) == {"unknown": 4}
    assert (await get(api, MAPPINGS)).body["items"] == []
    history = (await get(api, f"{MAPPINGS}/1")).body["items"]
    assert [each["revision"] for each in history] == [2, 1]
    again = await post(api, MAPPINGS, raw_code="EVZZ9", meaning=None, why="once more")
    assert (again.status, again.body["code"]) == (409, "conflict")


async def test_a_row_of_the_table_is_overridden_and_a_mapping_that_repeats_it_is_redundant(
    api: Any, royal: WorkerHarness
) -> None:
    await royal.push(royalmail("AB1GB", "EVGPD"), carrier_id="royalmail")
    await royal.work()
    (before,) = await statuses(royal)
    shown = (
        await post(api, MAPPINGS, raw_code="EVGPD", meaning={"status": "lost"}, why="a test")
    ).body
    assert (shown["shipped"]["status"], shown["redundant"]) == (before, False)
    await post(api, f"{MAPPINGS}/1/renormalize")
    assert await statuses(royal) == {"lost": 1}
    same = await post(api, MAPPINGS, raw_code="EVGPD", meaning=shown["shipped"], why="as the table")
    assert same.body["redundant"] is True


async def test_texts_are_shown_to_those_who_may_read_them_and_stand_nowhere_in_clear(
    api: Any, royal: WorkerHarness
) -> None:
    path = "/v1/carriers/australiapost/mappings"
    await royal.push(australiapost("33AB1", "Handed to the robot"), carrier_id="australiapost")
    await royal.work()
    taught = await post(
        api,
        path,
        raw_text="handed to the  ROBOT",
        meaning={"status": "delivered"},
        why="asked them",
    )
    assert (taught.status, taught.body["texts"]) == (201, None)
    assert "robot" not in json.dumps(taught.body).lower()
    assert "robot" not in json.dumps((await get(api, path)).body).lower()
    assert (await get(api, f"{path}?include=personal")).status == 403
    (shown,) = (await get(api, f"{path}?include=personal", "ops pii")).body["items"]
    assert list(shown["texts"].values()) == ["handed to the  ROBOT"]
    done = await post(api, f"{path}/1/renormalize")
    assert (done.body["corrected"], done.body["obstacle"]) == (1, None)
    assert await statuses(royal) == {"delivered": 1}
    assert (
        "robot"
        not in str(
            await royal.rows("SELECT convert_from(canonical, 'UTF8') FROM statesvc.action")
        ).lower()
    )
    readings = await royal.value(
        "SELECT count(*) FROM statesvc.action WHERE verb = 'read_personal'"
    )
    assert readings == 1, "the first reading of an hour is on record"
    taken_back = await post(
        api, path, raw_text="Handed to the robot", meaning=None, why="in the table"
    )
    assert taken_back.status == 201
    assert await royal.value("SELECT count(*) FROM statesvc.mapped_text") == 0


async def test_of_two_operators_who_map_a_code_at_once_one_is_refused(
    api: Any, royal: WorkerHarness
) -> None:
    await api.key("ops")
    lessons = ({"status": "lost"}, {"status": "delivered"}, {"kind": "info"})
    replies = await asyncio.gather(
        *(
            post(api, MAPPINGS, raw_code="EVZZ9", meaning=each, why="x", replaces=0, force=True)
            for each in lessons
        )
    )
    assert sorted(reply.status for reply in replies) == [201, 409, 409]
    assert {reply.body["latest_revision"] for reply in replies if reply.status == 409} == {1}
    assert await royal.value("SELECT count(*) FROM statesvc.code_mapping") == 1


@pytest.mark.parametrize("call_limits", [CallLimits(reread_messages=2, searched_events=2)])
async def test_many_messages_are_read_again_in_several_calls(
    api: Any, royal: WorkerHarness
) -> None:
    await push_unknown(royal, 7)
    await post(api, MAPPINGS, **LESSON, why="their letter")
    corrected, calls, cursor = 0, 0, None
    while calls == 0 or cursor is not None:
        reply = await post(api, f"{MAPPINGS}/1/renormalize", cursor=cursor)
        assert reply.status == 200, reply.body
        calls, corrected, cursor = (
            calls + 1,
            corrected + reply.body["corrected"],
            reply.body["next_cursor"],
        )
        assert reply.body["done"] is (cursor is None)
    assert (corrected, calls > 2) == (7, True)
    done = (
        "SELECT convert_from(canonical, 'UTF8')::jsonb->'details'->'done' FROM statesvc.action"
        " WHERE verb = 'renormalize' ORDER BY batch_id"
    )
    assert await royal.rows(done) == [(False,)] * (calls - 1) + [(True,)]
    bound = (await post(api, f"{MAPPINGS}/1/renormalize", cursor="bm90aGluZw")).body
    assert bound["code"] == "invalid_cursor"


async def test_a_mapping_that_no_event_meets_is_refused_unless_forced(
    api: Any, royal: WorkerHarness
) -> None:
    await push_unknown(royal, 1)
    for mapped, raw_code in enumerate(("EVZZ8", "(.*)+$", "EVZZ", "handed to depot/agent")):
        wanted: dict[str, Any] = {"raw_code": raw_code, "meaning": {"kind": "info"}, "why": "x"}
        refused = await post(api, MAPPINGS, **wanted)
        assert (refused.status, refused.body["code"]) == (422, "invalid_request"), raw_code
        assert "no event has this code" in refused.body["detail"], raw_code
        assert await royal.value("SELECT count(*) FROM statesvc.code_mapping") == mapped
        assert (await post(api, MAPPINGS, **wanted, force=True)).status == 201, raw_code


async def test_what_makes_no_sense_is_refused(api: Any) -> None:
    documents: tuple[dict[str, Any], ...] = (
        {"meaning": {"status": "lost"}},
        {"raw_code": "X"},
        {"raw_code": "", "meaning": {"status": "lost"}},
        {"raw_code": "text", "meaning": {"status": "lost"}},
        {"raw_code": "X", "meaning": {"status": "unknown"}},
        {"raw_code": "X", "meaning": {"kind": "scan"}},
        {"raw_code": "X", "meaning": {"kind": "info", "status": "lost"}},
        {"raw_code": "X", "meaning": {"kind": "info", "reason": "held"}},
        {"raw_code": "X", "meaning": {"kind": "correction"}},
        {"raw_code": "X", "meaning": {"status": "lost"}, "why": " "},
        {"raw_code": "X", "meaning": {"status": "lost"}, "replaces": -1},
    )
    for document in documents:
        reply = await post(api, MAPPINGS, **{"why": "x", **document})
        assert (reply.status, reply.body["code"]) == (422, "invalid_request"), document
        assert (await get(api, MAPPINGS)).body["items"] == [], document


async def test_scope_ops_is_needed_and_strangers_are_not_found(api: Any) -> None:
    others = "read audit pii subscriptions ingest"
    for path in (
        "/v1/unmapped-codes",
        "/v1/unmapped-codes/samples?carrier_id=ups",
        MAPPINGS,
        f"{MAPPINGS}/1",
    ):
        assert (await get(api, path, others)).status == 403
    for path in (MAPPINGS, f"{MAPPINGS}/preview", f"{MAPPINGS}/1/renormalize"):
        assert (await post(api, path, others, **LESSON, why="x")).status == 403
    assert (await get(api, f"{MAPPINGS}/1")).status == 404
    assert (await post(api, f"{MAPPINGS}/1/renormalize")).status == 404
    assert (
        await post(api, MAPPINGS, raw_code="X", meaning={"kind": "info"}, why="x", force=True)
    ).status == 201
    assert (await get(api, "/v1/carriers/ups/mappings/1")).status == 404
    assert (await get(api, "/v1/carriers/nobody/mappings")).body["code"] == "unknown_carrier"


async def test_a_text_next_to_an_unknown_code_proposes_what_it_means_and_nothing_is_read_so(
    api: Any, royal: WorkerHarness
) -> None:
    pushed = [
        royalmail("AB1GB", "EVZZ8", "Delivered to a neighbour"),
        royalmail("AB2GB", "EVZZ8", "Delivered by Zaphod"),
    ]
    await royal.push(*pushed, carrier_id="royalmail")
    await royal.work()
    (unknown,) = (await get(api, "/v1/unmapped-codes")).body["items"]
    proposal = {"status": "delivered", "reason": None, "why": "its text holds `delivered`"}
    assert (unknown["read"], unknown["proposed"]) == ("not_at_all", proposal)
    samples = (
        await get(api, "/v1/unmapped-codes/samples?carrier_id=royalmail&raw_code=EVZZ8")
    ).body["items"]
    assert [(sample["proposed"], sample["description"]) for sample in samples] == [
        (proposal, None)
    ] * 2
    assert await royal.rows("SELECT DISTINCT status FROM statesvc.shipment") == [("unknown",)]


async def test_texts_that_disagree_and_erased_ones_propose_nothing(
    api: Any, royal: WorkerHarness
) -> None:
    pushed = [
        royalmail("AB1GB", "EVZZ8", "Delivered"),
        royalmail("AB2GB", "EVZZ8", "Out for delivery"),
    ]
    await royal.push(*pushed, carrier_id="royalmail")
    await royal.work()
    (unknown,) = (await get(api, "/v1/unmapped-codes")).body["items"]
    assert unknown["proposed"] is None
    await royal.as_owner(
        "UPDATE statesvc.stream SET sealed_key = NULL, erased_at = statesvc.clock()"
    )
    samples = (
        await get(api, "/v1/unmapped-codes/samples?carrier_id=royalmail&raw_code=EVZZ8")
    ).body["items"]
    assert [sample["proposed"] for sample in samples] == [None, None]
