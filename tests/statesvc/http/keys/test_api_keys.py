"""Keys open what their scopes say, until they are revoked; nothing of a key is stored but its
hash.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from psycopg import AsyncConnection

from statesvc.database.pool import Pool, PoolLimits, make_pool
from statesvc.http.app import build_app
from statesvc.http.keys.api_keys import REMEMBERED_SECONDS, Keys, caller_of
from statesvc.http.keys.key_store import Scope, create_key, list_keys
from statesvc.http.operation import Route, answer, operation
from statesvc.subscriptions.key_revocation import revoke_key
from tests.statesvc.conftest import HandClock

BOOTSTRAP = "b" * 24
Call = Callable[[str | None], Awaitable[tuple[int, dict[str, Any]]]]


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
async def call(pool: Pool, clock: HandClock) -> AsyncIterator[Call]:
    async def who(request: web.Request) -> web.StreamResponse:
        return answer(
            {"actor": caller_of(request).actor, "scopes": sorted(caller_of(request).scopes)}
        )

    route = Route(
        "GET", "/who", who, operation(operation_id="call_1", summary="who am I", scope="audit")
    )
    app = build_app([route], keys=Keys(pool, bootstrap_key=BOOTSTRAP, now=clock))
    async with TestClient(TestServer(app)) as client:

        async def call(authorization: str | None) -> tuple[int, dict[str, Any]]:
            headers = {} if authorization is None else {"Authorization": authorization}
            response = await client.get("/who", headers=headers)
            return response.status, await response.json(content_type=None)

        yield call


async def make(pool: Pool, *scopes: Scope) -> tuple[str, str]:
    async with pool.connection() as connection:
        return await create_key(connection, name="test", scopes=scopes, created_by="operator:test")


async def test_a_key_with_the_scope_opens(pool: Pool, call: Call) -> None:
    key_id, key = await make(pool, Scope.AUDIT, Scope.READ)
    assert await call(f"bearer {key}") == (
        200,
        {"actor": f"key:{key_id}", "scopes": ["audit", "read"]},
    )


async def test_admin_implies_all(pool: Pool, call: Call) -> None:
    _, key = await make(pool, Scope.ADMIN)
    status, body = await call(f"Bearer {key}")
    assert (status, body["scopes"]) == (200, sorted(Scope))


async def test_a_key_without_the_scope_is_told_which_it_lacks(pool: Pool, call: Call) -> None:
    _, key = await make(pool, Scope.READ)
    status, body = await call(f"Bearer {key}")
    assert (status, body["code"], body["required_scope"]) == (403, "missing_scope", "audit")


NO_BEARER = "should be the word `Bearer`, a blank, and the key"


async def test_without_a_good_key_nothing_opens_and_it_is_said_why(call: Call) -> None:
    for authorization, why in (
        (None, "no key was sent"),
        ("", ""),
        ("Bearer", NO_BEARER),
        ("Bearer ", NO_BEARER),
        ("Bearer x", "not known here"),
        ("Basic eDp5", NO_BEARER),
        ("ss_000000000000_abc", NO_BEARER),
        ("Bearer ss_000000000000_" + "a" * 43, "not known here"),
        ("Bearer \udcff", ""),
    ):
        status, body = await call(authorization)
        assert (status, body["code"], why in body["detail"]) == (401, "unauthenticated", True), (
            authorization
        )


async def test_a_key_with_another_secret_is_none(pool: Pool, call: Call) -> None:
    _, key = await make(pool, Scope.AUDIT)
    forged = key[:-1] + ("a" if key[-1] != "a" else "b")
    assert (await call(f"Bearer {forged}"))[0] == 401


async def test_a_revoked_key_is_out_once_it_is_forgotten(
    pool: Pool, call: Call, clock: HandClock
) -> None:
    key_id, key = await make(pool, Scope.AUDIT)
    assert (await call(f"Bearer {key}"))[0] == 200
    async with pool.connection() as connection:
        assert await revoke_key(connection, key_id=key_id, revoked_by="operator:test") == []
        assert await revoke_key(connection, key_id=key_id, revoked_by="operator:test") is None
    clock.seconds += REMEMBERED_SECONDS
    assert (await call(f"Bearer {key}"))[0] == 401


async def test_the_bootstrap_key_needs_no_row(call: Call) -> None:
    status, body = await call(f"Bearer {BOOTSTRAP}")
    assert (status, body["actor"]) == (200, "key:bootstrap")


async def test_keys_are_listed_stored_hashed_and_logged(
    pool: Pool, owner: AsyncConnection[Any]
) -> None:
    key_id, key = await make(pool, Scope.OPS, Scope.READ)
    async with pool.connection() as connection:
        await revoke_key(connection, key_id=key_id, revoked_by="operator:test")
        (listed,) = await list_keys(connection)
    assert (listed.key_id, listed.scopes, listed.created_by) == (
        key_id,
        (Scope.OPS, Scope.READ),
        "operator:test",
    )
    assert listed.revoked_at is not None
    stored = await (await owner.execute("SELECT api_key::text FROM statesvc.api_key")).fetchall()
    query = "SELECT verb, target, canonical FROM statesvc.action ORDER BY batch_id"
    actions = await (await owner.execute(query)).fetchall()
    assert [(verb, target) for verb, target, _ in actions] == [
        ("key.create", f"key:{key_id}"),
        ("key.revoke", f"key:{key_id}"),
    ]
    assert key.split("_", 2)[2] not in str(stored) + str(actions)


async def test_a_key_needs_a_scope_and_a_name(pool: Pool) -> None:
    async with pool.connection() as connection:
        for name, scopes in (("test", ()), (" ", (Scope.READ,))):
            with pytest.raises(ValueError, match="needs"):
                await create_key(connection, name=name, scopes=scopes, created_by="operator:test")


async def test_a_database_that_is_away_is_a_quick_503(clock: HandClock) -> None:
    limits = PoolLimits(connections_max=1, acquire_seconds=0.2)
    pool = make_pool("host=127.0.0.1 port=1 dbname=none", name="away", limits=limits)
    await pool.open(wait=False)
    try:
        route = Route(
            "GET",
            "/who",
            lambda _request: answer({}),  # type: ignore[arg-type, return-value]
            operation(operation_id="call_2", summary="", scope="read"),
        )
        async with TestClient(TestServer(build_app([route], keys=Keys(pool, now=clock)))) as client:
            response = await client.get(
                "/who", headers={"Authorization": "Bearer ss_000000000000_" + "a" * 43}
            )
            assert (response.status, (await response.json(content_type=None))["code"]) == (
                503,
                "database_unavailable",
            )
    finally:
        await pool.close()
