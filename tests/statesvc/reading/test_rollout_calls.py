"""A candidate's share over the API and by the commands of its page: recorded, or refused where it cannot be."""

import base64
import shlex
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from aiohttp.test_utils import TestClient, TestServer

from events.carriers import CARRIERS
from statesvc.api.rollout_operations import OPERATIONS
from statesvc.http.app import build_app
from statesvc.http.keys.api_keys import Keys
from statesvc.http.keys.key_store import Scope, create_key
from statesvc.http.operation import routes_of
from tests.deploy.documented import blocks
from tests.statesvc.reading.foreign_fleet import Fleet
from tests.statesvc.reading.planted import CARRIER, MISREAD
from tests.world.api import context_of
from tests.world.shell import Shell, use
from tests.world.worker_harness import CARRIER_ID, WorkerHarness, push_body

PATH = f"/v1/rollouts/{CARRIER_ID}"
Client = TestClient[Any, Any]


@pytest.fixture
async def client(harness: WorkerHarness) -> AsyncIterator[Client]:
    _, key = await create_key(
        harness.connection, name="test", scopes=[Scope("ops")], created_by="test"
    )
    calls = routes_of(OPERATIONS, context_of(harness.context.pool, carriers={CARRIER_ID: CARRIER}))
    server = TestServer(build_app(calls, keys=Keys(harness.context.pool)))
    async with TestClient(server, headers={"Authorization": f"Bearer {key}"}) as client:
        yield client


async def put(client: Client, **change: Any) -> tuple[int, Any]:
    async with client.put(PATH, json=change) as answer:
        return answer.status, await answer.json()


async def test_what_is_left_out_stays_and_each_turn_says_who_and_why(
    client: Client, harness: WorkerHarness
) -> None:
    guard = {"messages": 100, "errors_percent": 1.0, "differences_percent": None}
    status, shown = await put(client, candidate="2", percent=5, guard=guard, why="try it")
    assert (status, shown["candidate"], shown["percent"], shown["shadow"], shown["guard"]) == (
        200,
        "2",
        5,
        False,
        guard,
    )
    assert shown["changed_by"].startswith("key:")
    _, shown = await put(client, percent=50)
    assert (shown["candidate"], shown["percent"], shown["guard"]) == ("2", 50, guard)
    _, shown = await put(client, hold=True)
    assert (shown["percent"], shown["hold"]) == (50, True)
    _, shown = await put(client, candidate=None)
    assert (shown["candidate"], shown["percent"], shown["guard"], shown["hold"]) == (
        None,
        0,
        None,
        True,
    )
    actions = await harness.rows(
        "SELECT verb, target, canonical FROM statesvc.action WHERE target = 'carrier acme' ORDER BY"
        " batch_id"
    )
    assert [verb for verb, _, _ in actions] == ["rollout", "rollout", "hold", "rollout"]
    assert orjson.loads(actions[0][2])["details"] == {
        "why": "try it",
        "candidate": "2",
        "percent": 5,
        "shadow": False,
        "guard": "100 messages, errors 1.0 %, differences None %",
    }


async def test_a_rollout_that_cannot_be_is_refused_and_nothing_is_turned(
    client: Client, harness: WorkerHarness
) -> None:
    for asked, pointer in (
        ({"candidate": "9", "percent": 1}, "/body/candidate"),
        ({"candidate": "1"}, "/body/candidate"),
        ({"percent": 1}, "/body/percent"),
        ({"shadow": True}, "/body/shadow"),
        ({"candidate": "2", "percent": 101}, "/body/percent"),
        ({"candidate": "2", "guard": {"messages": 10, "differences_percent": 1}}, "/body/guard"),
    ):
        status, problem = await put(client, hold=True, **asked)
        assert (status, problem["code"]) == (422, "invalid_request"), asked
        assert [flaw["pointer"] for flaw in problem["errors"]] == [pointer], asked
        assert await harness.value("SELECT count(*) FROM statesvc.rollout") == 0, asked


async def test_differences_are_paged_with_their_totals(
    client: Client, harness: WorkerHarness
) -> None:
    await put(client, candidate="2", percent=0, shadow=True)
    await harness.push(
        *(push_body({"number": f"N{n}", "status": "in_transit", "code": MISREAD}) for n in range(5))
    )
    await harness.work()
    seen, cursor = [], None
    while True:
        async with client.get(
            f"{PATH}/diffs", params={"limit": 2} | ({"cursor": cursor} if cursor else {})
        ) as answer:
            page = await answer.json()
        assert page["totals"] == {
            "candidate": "2",
            "messages": 5,
            "errors": 0,
            "differing": 5,
            "fields": {"status": 5},
            "dropped": 0,
        }
        seen += page["items"]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert len({item["diff_id"] for item in seen}) == 5
    assert {(item["field"], item["stable_value"], item["candidate_value"]) for item in seen} == {
        ("status", "in_transit", "delivered")
    }


async def test_another_fleets_reading_is_set_and_shown_with_whether_anybody_asks_for_it(
    client: Client, harness: WorkerHarness
) -> None:
    status, shown = await put(client, stable="old@1", candidate="1", percent=10, fallback_seconds=5)
    assert (
        status,
        shown["stable"],
        shown["candidate"],
        shown["percent"],
        shown["fallback_seconds"],
    ) == (200, "old@1", "1", 10, 5)
    assert shown["warnings"] == [
        "no worker asked for old@1 within the last minute: is it misspelt?"
    ]
    await harness.push(push_body())
    assert await Fleet(harness, "old@1").claim("raw", 0) == []
    _, shown = await put(client, percent=0)
    assert (shown["stable"], shown["percent"], shown["fallback_seconds"], shown["warnings"]) == (
        "old@1",
        0,
        5,
        [],
    )
    stable, candidate = shown["readings"]
    assert (
        stable["reading"],
        stable["role"],
        stable["share"],
        stable["waiting"],
        stable["leased"],
    ) == ("old@1", "stable", 100, 1, 0)
    assert (candidate["reading"], candidate["role"], candidate["share"]) == (
        "statesvc",
        "candidate",
        0,
    )
    _, shown = await put(client, stable=None, candidate=None)
    assert (shown["stable"], shown["candidate"], shown["readings"]) == (None, None, [])


async def test_other_event_ids_refuse_a_share_that_is_not_forced_with_a_reason(
    client: Client, harness: WorkerHarness
) -> None:
    await put(client, candidate="forgetful", shadow=True)
    await harness.push(push_body({"number": "N1", "status": "in_transit"}))
    await harness.work()
    status, problem = await put(client, percent=1)
    assert (status, problem["errors"][0]["pointer"]) == (422, "/body/percent")
    assert (
        "gave 1 events of acme another id than the stable reading, or none"
        in problem["errors"][0]["detail"]
    )
    status, _ = await put(client, percent=1, force=True)
    assert status == 422, "no reason"
    status, shown = await put(client, percent=1, force=True, why="it leaves out what nobody wants")
    assert (status, shown["percent"]) == (200, 1)


PAGE = "docs/normalizer-versions.md"


@pytest.fixture
def commands(
    harness: WorkerHarness, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> list[list[str]]:
    """Return the words of each command, without `statesvc`; the body that they name is there."""
    use(harness.database, monkeypatch)
    monkeypatch.setenv("STATESVC_MASTER_KEY", base64.b64encode(bytes(range(32))).decode())
    monkeypatch.setitem(CARRIERS, CARRIER_ID, CARRIER)
    body = tmp_path / "alert.json"
    body.write_bytes(misread(0))
    values = {"ups": CARRIER_ID, "alert.json": str(body)}
    return [
        [values.get(word, word) for word in shlex.split(command)[1:]]
        for block in blocks(PAGE)
        for command in block.commands()
    ]


def misread(number: int) -> bytes:
    return push_body({"number": f"N{number}", "status": "in_transit", "code": MISREAD})


async def test_the_commands_of_the_page_do_what_it_says(
    harness: WorkerHarness, shell: Shell, commands: list[list[str]]
) -> None:
    by_one, by_two, shadow, show, some, everything, back, plan, repair, history = commands
    delivered = "SELECT count(*)::int FROM statesvc.shipment WHERE status = 'delivered'"

    assert ('"in_transit"' in await shell(*by_one), '"delivered"' in await shell(*by_two)) == (
        True,
        True,
    )

    await shell(*shadow)
    await harness.push(*map(misread, range(10)))
    await harness.work()
    assert await harness.value(delivered) == 0
    assert "10 messages: 0 failed, 10 read differently" in await shell(*show)

    await shell(*some)
    ((percent, is_shadow, judged),) = await harness.rows(
        "SELECT percent::int, shadow, guard_messages FROM statesvc.rollout"
    )
    assert (percent, is_shadow, judged) == (5, True, 1000)

    await shell(*everything)
    assert await harness.rows("SELECT percent::int, shadow FROM statesvc.rollout") == [(100, False)]
    await harness.push(*map(misread, range(10, 20)))
    await harness.work()
    assert await harness.value(delivered) == 10

    await shell(*back)
    await harness.push(*map(misread, range(20, 30)))
    await harness.work()
    assert await harness.value(delivered) == 10, "what it read stays, and it reads no more"
    assert "10" in await shell(*plan)
    assert await harness.value(delivered) == 10
    await shell(*repair)
    assert await harness.value(delivered) == 0

    assert await shell(*history)
