"""Replaying and discarding over the API: what is done, what is refused, and the record."""

import json
from typing import Any

import pytest

from events.errors import Cause
from events.parsing.meanings import Meaning
from events.vocabulary import Kind, Status
from statesvc.api.call_limits import CallLimits
from statesvc.api.dead_letter_replay_models import ReplayedMany, ReplayedOne
from statesvc.bodies.sealed_message import seal_message
from statesvc.database.wakeups.wakeup import READY_NOW
from statesvc.ingress.group_commit import put
from statesvc.queue.claim import Burial, ClaimRequest, bury, claim
from statesvc.repair.dead_letters.listing import DeadLetterDetails, DeadLetterGroups
from tests.world.mappings import store_mapping

ALL = ClaimRequest(worker="worker-1", limit=500, lease_seconds=30, bytes_max=1 << 20, sweep=True)


async def bury_messages(
    api: Any, *details: str, cause: Cause = Cause.NORMALIZER_FAILED
) -> list[int]:
    """Push messages that are then buried with these details; return the open dead letters."""
    messages = [
        seal_message(api.keyring, "ups", f"{number} {detail}".encode(), "{}")
        for number, detail in enumerate(details)
    ]
    await put(api.connection, messages)
    claimed = (await claim(api.connection, ALL)).messages
    said = dict(zip([message.message_id for message in messages], details, strict=True))
    burials = [
        Burial(message_id=message.message_id, cause=cause, detail=said[message.message_id])
        for message in claimed
    ]
    await bury(api.connection, claimed[0].token, burials)
    return await open_dead_letters(api)


async def settle_messages(api: Any) -> None:
    """Settle the messages that carriers pushed, whose bodies are stored no longer."""
    await api.carriers.execute(
        "INSERT INTO statesvc.message (message_id, received_at, settled_at, attempts, events,"
        " carrier_id, outcome, normalizer, worker, shipments) SELECT message_id, received_at,"
        " recorded_at, 1, 1, 'ups', 'applied', 'ups@1', 'worker-1', ARRAY[shipment_id] FROM"
        " statesvc.event WHERE kind = 'unmapped'"
    )


async def rows(api: Any, query: str) -> list[Any]:
    found: list[Any] = await api.rows(query)
    return found


async def open_dead_letters(api: Any) -> list[int]:
    return [
        row[0]
        for row in await rows(
            api,
            "SELECT dead_letter_id FROM statesvc.dead_letter WHERE resolved_at IS NULL ORDER BY 1",
        )
    ]


async def post(api: Any, path: str, **document: Any) -> Any:
    return await api.call("POST", path, scopes="ops", json=document)


async def actions(api: Any) -> list[tuple[str, dict[str, Any]]]:
    found = [
        json.loads(canonical)
        for (canonical,) in await rows(
            api, "SELECT canonical FROM statesvc.action ORDER BY batch_id"
        )
    ]
    return [
        (action["verb"], action["details"])
        for action in found
        if action["verb"].startswith(("replay", "discard"))
    ]


async def test_one_message_is_put_back_recorded_and_its_workers_woken(api: Any) -> None:
    (dead_letter_id,) = await bury_messages(api, "KeyError in ups line 7")
    reply = await post(api, f"/v1/dead-letters/{dead_letter_id}/replay", why="mended")
    assert reply.status == 200, reply.body
    shown = ReplayedOne.model_validate(reply.body)
    assert (shown.way, shown.resolved, shown.next_cursor) == ("put_back", True, None)
    assert await rows(api, "SELECT attempts, stage FROM statesvc.inbox") == [(0, "raw")]
    assert sorted(api.woken) == sorted(READY_NOW)
    (begun, begun_details), (ended, ended_details) = await actions(api)
    assert (begun, begun_details["why"], begun_details["run"]) == (
        "replay_begun",
        "mended",
        str(shown.run_id),
    )
    assert (ended, ended_details["replayed"], ended_details["run"]) == (
        "replay_ended",
        1,
        str(shown.run_id),
    )
    again = await post(api, f"/v1/dead-letters/{dead_letter_id}/replay")
    assert (again.status, again.body["code"], again.body["obstacle"]) == (
        409,
        "conflict",
        "replayed",
    )
    after = (await api.get(f"/v1/dead-letters/{dead_letter_id}", scopes="ops")).body
    assert (after["became"], after["resolution"], after["run_id"]) == (
        "waiting",
        "replayed",
        str(shown.run_id),
    )


async def test_a_letter_shows_its_attempts_and_its_related(api: Any) -> None:
    (first,) = await bury_messages(api, "KeyError in ups line 7")
    await post(api, f"/v1/dead-letters/{first}/replay", why="perhaps it works now")
    claimed = (await claim(api.connection, ALL)).messages
    await bury(
        api.connection,
        claimed[0].token,
        [Burial(message_id=claimed[0].message_id, cause=Cause.UNREADABLE, detail="not JSON")],
    )
    (second,) = await open_dead_letters(api)
    await api.carriers.execute(
        "INSERT INTO statesvc.message_attempt (message_id, started_at, ended_at, attempt,"
        " carrier_id, outcome, worker, error, normalizer) SELECT message_id, statesvc.clock(),"
        " statesvc.clock(), 1, 'ups', 'lease_ended', 'worker-9', 'worker_died', 'ups@1' FROM"
        " statesvc.dead_letter WHERE dead_letter_id = %s",
        [second],
    )
    shown = (await api.get(f"/v1/dead-letters/{second}", scopes="ops")).body
    DeadLetterDetails.model_validate(shown)
    assert (shown["way"], shown["obstacle"], shown["became"]) == ("put_back", None, None)
    ((other),) = shown["related"]
    assert (other["dead_letter_id"], other["detail"], other["resolution"], other["why"]) == (
        first,
        "KeyError in ups line 7",
        "replayed",
        "perhaps it works now",
    )
    last = shown["attempts_made"][-1]
    assert (last["worker"], last["outcome"], last["error"], last["normalizer"]) == (
        "worker-9",
        "lease_ended",
        "worker_died",
        "ups@1",
    )
    earlier = (await api.get(f"/v1/dead-letters/{first}", scopes="ops")).body
    assert (earlier["became"], earlier["obstacle"]) == ("buried", "replayed")


async def test_groups_show_what_went_wrong_most(api: Any) -> None:
    await bury_messages(api, *["KeyError in ups line 7"] * 3, "ValueError in ups line 9")
    await bury_messages(api, "not JSON", cause=Cause.UNREADABLE)
    groups = (await api.get("/v1/dead-letters/groups", scopes="ops")).body
    DeadLetterGroups.model_validate(groups)
    assert [(group["cause"], group["dead_letters"], group["way"]) for group in groups["items"]] == [
        ("normalizer_failed", 4, "put_back"),
        ("unreadable", 1, "put_back"),
    ]
    assert groups["items"][0]["details"] == [
        {"detail": "KeyError in ups line 7", "dead_letters": 3},
        {"detail": "ValueError in ups line 9", "dead_letters": 1},
    ]
    assert groups["items"][0]["dead_letter_ids"] == [4, 3, 2]
    only = (
        await api.get("/v1/dead-letters/groups", scopes="ops", params={"cause": "unreadable"})
    ).body
    assert [group["cause"] for group in only["items"]] == ["unreadable"]


async def test_a_filter_is_planned_then_replayed_page_by_page(api: Any) -> None:
    dead_letters = await bury_messages(api, *["x"] * 7)
    await bury_messages(api, "y", cause=Cause.UNREADABLE)
    await api.carriers.execute(
        "UPDATE statesvc.dead_letter SET sealed_key = NULL WHERE dead_letter_id = %s",
        [dead_letters[1]],
    )
    wanted = {"carrier_id": "ups", "cause": "normalizer_failed"}
    planned = (await post(api, "/v1/dead-letters/replay", **wanted, dry_run=True)).body
    ReplayedMany.model_validate(planned)
    assert planned["plan"] == [
        {
            "kind": "message",
            "cause": "normalizer_failed",
            "carrier_id": "ups",
            "way": "put_back",
            "dead_letters": 7,
            "replayable": 6,
            "obstacles": {"erased": 1},
        }
    ]
    assert await rows(api, "SELECT count(*) FROM statesvc.inbox") == [(0,)]
    canary = (await post(api, "/v1/dead-letters/replay", **wanted, limit=3)).body
    assert (canary["replayed"], canary["refused"]) == (2, {"erased": 1})
    assert (canary["ended"], canary["waiting"], canary["remaining"]) == ("limit_reached", 2, 4)
    rest = (await post(api, "/v1/dead-letters/replay", **wanted, cursor=canary["next_cursor"])).body
    assert (rest["replayed"], rest["next_cursor"], rest["ended"], rest["remaining"]) == (
        4,
        None,
        "done",
        0,
    )
    assert rest["run_id"] == canary["run_id"]
    assert await rows(api, "SELECT count(*) FROM statesvc.inbox") == [(6,)]
    assert [
        (verb, details["replayed"])
        for verb, details in await actions(api)
        if verb == "replay_ended"
    ] == [
        ("replay_ended", 2),
        ("replay_ended", 4),
    ]
    other = await post(
        api, "/v1/dead-letters/replay", cause="unreadable", cursor=canary["next_cursor"]
    )
    assert (other.status, other.body["code"]) == (400, "invalid_cursor")


async def test_some_are_replayed_by_their_ids(api: Any) -> None:
    first, second, third = await bury_messages(api, *["x"] * 3)
    reply = await post(api, "/v1/dead-letters/replay", ids=[first, third], why="these")
    assert (reply.body["replayed"], reply.body["remaining"]) == (2, 0)
    assert await open_dead_letters(api) == [second]
    settled = await post(api, "/v1/dead-letters/discard", ids=[first, second], why="those")
    assert (settled.status, settled.body["obstacle"]) == (409, "replayed")
    assert (await post(api, "/v1/dead-letters/replay", ids=[third + 1])).status == 404
    assert (
        await post(api, "/v1/dead-letters/replay", ids=[second], carrier_id="ups")
    ).status == 422


async def test_a_filter_must_mean_something(api: Any) -> None:
    for document in (
        {},
        {"since": "2026-01-01T00:00:00Z"},
        {"cause": "bad_luck"},
        {"carrier_id": "ups", "limit": 100_000},
    ):
        assert (await post(api, "/v1/dead-letters/replay", **document)).status == 422


async def test_a_code_is_read_again_once_it_is_mapped(api: Any, scan: Any) -> None:
    for number in range(3):
        await api.carriers.push(scan(str(number), None, kind=Kind.UNMAPPED, type="Q", code="77"))
    (dead_letter_id,) = await open_dead_letters(api)
    refused = await post(api, f"/v1/dead-letters/{dead_letter_id}/replay")
    assert (refused.status, refused.body["obstacle"]) == (409, "no_mapping")
    paged = (await post(api, "/v1/dead-letters/replay", cause="unknown_code")).body
    assert (paged["replayed"], paged["refused"], paged["next_cursor"]) == (
        0,
        {"no_mapping": 1},
        None,
    )
    await store_mapping(api.connection, ("ups", "Q", "77"), Meaning(Kind.SCAN, Status.LOST))
    # messages that were never stored cannot be read, so the dead letter stays open
    left = await post(api, f"/v1/dead-letters/{dead_letter_id}/replay")
    assert (left.status, left.body["obstacle"]) == (409, "still_unknown")
    await settle_messages(api)
    done = await post(api, f"/v1/dead-letters/{dead_letter_id}/replay", why="mapped")
    assert done.status == 200, done.body
    assert (
        done.body["way"],
        done.body["resolved"],
        done.body["messages"],
        done.body["corrected"],
    ) == ("read_code", True, 3, 3)
    assert await rows(api, "SELECT DISTINCT status FROM statesvc.shipment") == [("lost",)]
    verbs = [verb for verb, details in await actions(api) if details.get("why") == "mapped"]
    assert verbs == ["replay_begun", "replay_ended"]


@pytest.mark.parametrize("call_limits", [CallLimits(reread_messages=2)])
async def test_many_events_of_a_code_are_read_in_several_calls(api: Any, scan: Any) -> None:
    for number in range(5):
        await api.carriers.push(scan(str(number), None, kind=Kind.UNMAPPED, type="Q", code="77"))
    await settle_messages(api)
    (dead_letter_id,) = await open_dead_letters(api)
    await store_mapping(api.connection, ("ups", "Q", "77"), Meaning(Kind.SCAN, Status.LOST))
    cursor, corrected, calls = None, 0, 0
    while calls < 10:
        reply = await post(api, f"/v1/dead-letters/{dead_letter_id}/replay", cursor=cursor)
        assert reply.status == 200, reply.body
        calls, corrected, cursor = (
            calls + 1,
            corrected + reply.body["corrected"],
            reply.body["next_cursor"],
        )
        assert reply.body["resolved"] is (cursor is None)
        if cursor is None:
            break
    assert (calls, corrected) == (3, 5)
    assert await open_dead_letters(api) == []


async def test_discarding_needs_a_reason_and_is_final(api: Any) -> None:
    (dead_letter_id,) = await bury_messages(api, "x")
    assert (await post(api, f"/v1/dead-letters/{dead_letter_id}/discard")).status == 422
    assert (await post(api, f"/v1/dead-letters/{dead_letter_id}/discard", why="")).status == 422
    discarded = await post(
        api, f"/v1/dead-letters/{dead_letter_id}/discard", why="their test system"
    )
    assert (discarded.status, discarded.body["resolution"], discarded.body["why"]) == (
        200,
        "discarded",
        "their test system",
    )
    assert [(verb, details["why"]) for verb, details in await actions(api)] == [
        ("discard", "their test system")
    ]
    for action in ("discard", "replay"):
        again = await post(api, f"/v1/dead-letters/{dead_letter_id}/{action}", why="again")
        assert (again.status, again.body["obstacle"]) == (409, "discarded")
    assert (await post(api, "/v1/dead-letters/99/discard", why="none")).status == 404
    assert (await post(api, "/v1/dead-letters/99/replay")).status == 404
