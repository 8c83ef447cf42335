"""`/v1/keys`: made, listed with their last use, expired and revoked."""

from datetime import UTC, datetime, timedelta
from typing import Any

from statesvc.http.keys.api_keys import Keys
from statesvc.subscriptions.key_revocation import revoke_expired
from tests.world.api import Api
from tests.world.database import SingleConnection

TOMORROW = (datetime.now(UTC) + timedelta(days=1)).isoformat()


async def make(api: Api, **wanted: Any) -> Any:
    reply = await api.call(
        "POST",
        "/v1/keys",
        scopes="admin",
        json={"name": "night shift", "scopes": ["ops", "read"], **wanted},
    )
    assert reply.status == 201, reply.body
    return reply.body


async def listed(api: Api, key_id: str) -> Any:
    (found,) = (
        key
        for page in await api.pages("/v1/keys", scopes="admin", limit=2)
        for key in page
        if key["key_id"] == key_id
    )
    return found


async def test_a_key_is_made_and_shown_once(api: Api) -> None:
    made = await make(api, expires_at=TOMORROW)
    holder = await Keys(SingleConnection(api.connection)).holder(made["key"])
    assert holder is not None
    assert (holder.key_id, sorted(holder.scopes)) == (made["key_id"], ["ops", "read"])
    shown = await listed(api, made["key_id"])
    assert made["key"] not in str(shown)
    assert (shown["name"], shown["owner"], shown["revoked_at"]) == (
        "night shift",
        made["key_id"],
        None,
    )
    assert shown["created_by"].startswith("key:")
    assert datetime.fromisoformat(shown["expires_at"]) == datetime.fromisoformat(TOMORROW)


async def test_the_last_use_of_a_key_is_listed(api: Api) -> None:
    made = await make(api)
    assert (await listed(api, made["key_id"]))["last_used_at"] is None
    async with api.client.get(
        "/v1/queue", headers={"Authorization": f"Bearer {made['key']}"}
    ) as answer:
        assert answer.status == 200
    assert (await listed(api, made["key_id"]))["last_used_at"] is not None


async def test_an_expired_key_opens_nothing_and_is_revoked_by_itself(api: Api) -> None:
    made = await make(api, expires_at=TOMORROW)
    await api.connection.execute(
        "UPDATE statesvc.api_key SET expires_at = statesvc.clock() WHERE key_id = %s",
        (made["key_id"],),
    )
    async with api.client.get(
        "/v1/queue", headers={"Authorization": f"Bearer {made['key']}"}
    ) as answer:
        assert answer.status == 401
    assert await revoke_expired(api.connection) == [made["key_id"]]
    assert (await listed(api, made["key_id"]))["revoked_at"] is not None
    assert await revoke_expired(api.connection) == []


async def test_a_key_is_revoked_once(api: Api) -> None:
    made = await make(api)
    revoked = await api.call("DELETE", f"/v1/keys/{made['key_id']}", scopes="admin")
    assert (
        revoked.status,
        revoked.body["disabled_subscriptions"],
        len(revoked.body["tombstones"]),
    ) == (200, [], 1)
    again = await api.call("DELETE", f"/v1/keys/{made['key_id']}", scopes="admin")
    assert (again.status, again.body["code"]) == (409, "conflict")
    assert (await api.call("DELETE", "/v1/keys/nobody", scopes="admin")).status == 404


async def test_a_key_that_makes_no_sense_is_refused(api: Api) -> None:
    documents: tuple[dict[str, Any], ...] = (
        {"scopes": []},
        {"scopes": ["everything"]},
        {"name": " "},
        {"owner": "two words"},
        {"expires_at": "2020-01-01T00:00:00Z"},
    )
    for wrong in documents:
        reply = await api.call(
            "POST", "/v1/keys", scopes="admin", json={"name": "x", "scopes": ["read"], **wrong}
        )
        assert (reply.status, reply.body["code"]) == (422, "invalid_request"), wrong
