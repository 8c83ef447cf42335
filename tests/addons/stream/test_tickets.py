"""A ticket opens its selection of the stream for a minute, in place of a key; and the pages that
lead up to the stream.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from freezegun import freeze_time

from statesvc.api.call_limits import CallLimits
from statesvc.http.keys.key_store import Scope, create_key
from statesvc.subscriptions.key_revocation import revoke_key
from tests.addons.stream.conftest import Stage
from tests.addons.stream.event_source import event_source


async def ticket(stage: Stage, **asked: Any) -> Any:
    answer = await stage.client.post(
        "/v1/stream/tickets", json=asked or None, headers=stage.headers()
    )
    assert answer.status == 201, await answer.text()
    return await answer.json()


async def refusal(stage: Stage, path: str) -> tuple[int, str]:
    answer = await stage.client.get(path)
    try:
        return answer.status, "" if answer.status == 200 else (await answer.json())["code"]
    finally:
        answer.close()


async def test_it_opens_its_selection_and_no_other_without_a_key_from_any_origin(
    stage: Stage,
) -> None:
    made = await ticket(stage, carrier_id=["ups"], status=["delivered"])
    assert (
        timedelta(seconds=50)
        < datetime.fromisoformat(made["expires_at"]) - datetime.now(UTC)
        <= timedelta(seconds=60)
    )
    await stage.move(["1Z1"])
    await stage.move(["F1"], carrier_id="fedex")
    await stage.publish()
    wanted = [
        one for one in await stage.truth() if (one["carrier_id"], one["to"]) == ("ups", "delivered")
    ]
    async with event_source(stage.client, made["path"] + "&after=-1") as source:
        assert source.answer.headers["Access-Control-Allow-Origin"] == "*"
        assert [one.data for one in await source.next(len(wanted))] == wanted
    # an EventSource that comes back within the minute goes on where it was
    async with event_source(
        stage.client, made["path"], headers={"Last-Event-ID": "1.-1"}
    ) as source:
        assert [one.data for one in await source.next(len(wanted))] == wanted
    assert await refusal(stage, made["path"] + "&status=in_transit") == (422, "invalid_request")
    async with stage.source() as source:
        assert "Access-Control-Allow-Origin" not in source.answer.headers


@pytest.mark.parametrize("remembered_seconds", [0.0])
async def test_it_opens_nothing_else_and_nothing_once_changed_expired_or_its_key_revoked(
    stage: Stage,
) -> None:
    made = await ticket(stage)
    token = made["ticket"]
    assert await refusal(stage, f"/v1/feed/transitions?ticket={token}") == (401, "unauthenticated")
    for changed in (token[:-2] + "AA", token[1:], "", "x", token.replace(".", "")):
        assert await refusal(stage, f"/v1/stream?ticket={changed}") == (401, "unauthenticated")
    with freeze_time(datetime.now(UTC) + timedelta(seconds=61), real_asyncio=True):
        assert await refusal(stage, made["path"]) == (401, "unauthenticated")
    assert await refusal(stage, made["path"]) == (200, "")
    await revoke_key(stage.log.connection, key_id=stage.key_id, revoked_by="test")
    assert await refusal(stage, made["path"]) == (401, "unauthenticated")


async def test_a_key_without_read_gets_none(stage: Stage) -> None:
    _, key = await create_key(
        stage.log.connection, name="other", scopes=[Scope.SUBSCRIPTIONS], created_by="test"
    )
    answer = await stage.client.post(
        "/v1/stream/tickets", headers={"Authorization": f"Bearer {key}"}
    )
    assert (answer.status, (await answer.json())["required_scope"]) == (403, "read")


@pytest.mark.parametrize("call_limits", [CallLimits(feed_entries=7, feed_reads=2)])
@pytest.mark.parametrize(
    "selection", [{}, {"carrier_id": ["ups"], "status": ["delivered", "picked_up"]}]
)
async def test_the_past_in_pages_is_what_the_stream_says_and_leads_up_to_it(
    stage: Stage, selection: dict[str, list[str]]
) -> None:
    await stage.move([f"1Z{place}" for place in range(6)])
    await stage.move(["F1", "F2"], carrier_id="fedex")
    await stage.publish()
    query = [(name, value) for name, values in selection.items() for value in values]
    seen: list[Any] = []
    after, pages = "-1", 0
    while True:
        answer = await stage.client.get(
            "/v1/feed/transitions",
            params=[*query, ("after", after), ("limit", "3")],
            headers=stage.headers(),
        )
        page = await answer.json()
        assert answer.status == 200, page
        assert len(page["items"]) <= 3
        seen, after, pages = seen + page["items"], page["cursor"], pages + 1
        if page["next_cursor"] is None:
            break
        assert page["next_cursor"] == after
    chosen = [
        one
        for one in await stage.truth()
        if not selection or (one["carrier_id"] == "ups" and one["to"] in selection["status"])
    ]
    assert seen == chosen
    assert pages > 3
    await stage.publish_moves("1Z99")
    async with stage.source(f"/v1/stream?after={after}") as source:
        assert [one.data for one in await source.next(5)] == (await stage.truth())[-5:]


async def test_a_place_beyond_the_log_is_refused(stage: Stage) -> None:
    answer = await stage.client.get("/v1/feed/transitions?after=1.99", headers=stage.headers())
    assert (answer.status, (await answer.json())["code"]) == (400, "invalid_cursor")
    empty = await stage.client.get("/v1/feed/transitions", headers=stage.headers())
    assert await empty.json() == {"items": [], "next_cursor": None, "cursor": "1.-1"}
