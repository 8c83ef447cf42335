"""Keys open what their scopes say, until they are revoked, at a bounded rate; nothing of a key is
stored but its hash.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack
from typing import Any
from unittest.mock import Mock

import psycopg
import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from psycopg import AsyncConnection

from statesvc.database.pool import Pool
from statesvc.http.app import build_app
from statesvc.http.keys.api_keys import REMEMBERED_SECONDS, Keys, caller_of
from statesvc.http.keys.key_limits import KeyLimits
from statesvc.http.keys.key_store import Scope, create_key, list_keys
from statesvc.http.operation import Reply, Route, answer, operation
from statesvc.http.problem import Code, Problem
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


async def test_a_key_opens_what_its_scopes_say_and_admin_all(pool: Pool, call: Call) -> None:
    key_id, key = await make(pool, Scope.AUDIT, Scope.READ)
    shown = {"actor": f"key:{key_id}", "scopes": ["audit", "read"]}
    assert await call(f"bearer {key}") == (200, shown)
    status, body = await call(f"Bearer {(await make(pool, Scope.ADMIN))[1]}")
    assert (status, body["scopes"]) == (200, sorted(Scope))
    status, body = await call(f"Bearer {(await make(pool, Scope.READ))[1]}")
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


async def test_the_bootstrap_key_needs_no_row_and_ends_with_its_setting(
    pool: Pool, call: Call
) -> None:
    status, body = await call(f"Bearer {BOOTSTRAP}")
    assert (status, body["actor"]) == (200, "key:bootstrap")
    assert await Keys(pool).by_id("bootstrap") is None


async def test_a_look_up_that_failed_is_made_again(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys, (_, key) = Keys(pool), await make(pool, Scope.READ)
    monkeypatch.setattr(pool, "connection", Mock(side_effect=psycopg.OperationalError))
    with pytest.raises(psycopg.OperationalError):
        await keys.holder(key)
    monkeypatch.undo()
    assert await keys.holder(key) is not None


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


@pytest.fixture
def refused() -> list[str]:
    return []


@pytest.fixture
def limits(clock: HandClock, refused: list[str]) -> KeyLimits:
    return KeyLimits(
        calls_max=3, computed_max=1, calls_per_second=5, now=clock, refused=refused.append
    )


def ask(limits: KeyLimits, key: str = "a", *, is_computed: bool = False) -> None:
    with limits.call(key, is_computed=is_computed):
        pass


def assert_refused(
    limits: KeyLimits, key: str = "a", *, is_computed: bool = False, retry_after: str = "1"
) -> None:
    with pytest.raises(Problem) as refusal:
        ask(limits, key, is_computed=is_computed)
    assert (refusal.value.code, refusal.value.status, refusal.value.headers["Retry-After"]) == (
        Code.TOO_MANY_REQUESTS,
        429,
        retry_after,
    )


def test_a_key_has_so_many_calls_at_a_time_and_another_key_its_own(
    limits: KeyLimits, refused: list[str]
) -> None:
    with ExitStack() as stack:
        for _ in range(3):
            stack.enter_context(limits.call("a", is_computed=False))
        assert_refused(limits)
        ask(limits, "b")
    ask(limits)
    assert refused == ["concurrency"]


def test_fewer_of_those_that_compute(limits: KeyLimits, refused: list[str]) -> None:
    with limits.call("a", is_computed=True):
        assert_refused(limits, is_computed=True)
        ask(limits)
        ask(limits, "b", is_computed=True)
    ask(limits, is_computed=True)
    assert refused == ["computing"]


def test_a_call_that_fails_is_over_too(limits: KeyLimits) -> None:
    for _ in range(4):
        with pytest.raises(ValueError, match="wrong"), limits.call("a", is_computed=True):
            raise ValueError("wrong")


def test_a_key_asks_at_its_rate_after_a_burst(
    limits: KeyLimits, clock: HandClock, refused: list[str]
) -> None:
    for _ in range(10):
        ask(limits)
    assert_refused(limits)
    ask(limits, "b")
    clock.seconds += 0.2
    ask(limits)
    assert_refused(limits)
    clock.seconds += 100
    for _ in range(10):
        ask(limits)
    assert_refused(limits)
    assert set(refused) == {"rate"}


def test_a_slow_rate_says_how_long_to_wait(clock: HandClock) -> None:
    limits = KeyLimits(calls_max=1, computed_max=1, calls_per_second=0.1, now=clock)
    ask(limits)
    assert_refused(limits, retry_after="10")


def test_a_key_is_shown_what_is_left_of_its_rate(limits: KeyLimits, clock: HandClock) -> None:
    assert limits.headers("a") == {
        "RateLimit": '"key";r=10;t=0',
        "RateLimit-Policy": '"key";q=10;w=2',
    }
    for _ in range(3):
        ask(limits)
    assert limits.headers("a")["RateLimit"] == '"key";r=7;t=1'
    clock.seconds += 0.3
    assert limits.headers("a")["RateLimit"] == '"key";r=8;t=1'
    assert limits.headers("b")["RateLimit"] == '"key";r=10;t=0'


async def who(_request: web.Request) -> Reply[dict[str, str]]:
    return answer({})


async def test_every_answer_to_a_limited_call_shows_it_and_ingest_and_streams_are_free(
    clock: HandClock,
) -> None:
    limits = KeyLimits(calls_max=1, computed_max=1, calls_per_second=1, now=clock)
    calls: dict[str, dict[str, Any]] = {
        "/who": {"scope": "read"},
        "/ingest": {"scope": "ingest"},
        "/stream": {"scope": "read", "deadline_seconds": None},
    }
    routes = [
        Route("GET", path, who, operation(operation_id=path, summary="", **call))
        for path, call in calls.items()
    ]
    app = build_app(routes, keys=Keys(None, bootstrap_key=BOOTSTRAP), limits=limits)  # type: ignore[arg-type]
    headers = {"Authorization": f"Bearer {BOOTSTRAP}"}
    async with TestClient(TestServer(app), headers=headers) as client:
        shown = [await client.get("/who") for _ in range(3)]
        assert [(answer.status, answer.headers["RateLimit"].split(";")[1]) for answer in shown] == [
            (200, "r=1"),
            (200, "r=0"),
            (429, "r=0"),
        ]
        assert shown[2].headers["Retry-After"] == "1"
        assert (await client.get("/who?x=1")).headers["RateLimit-Policy"] == '"key";q=2;w=2'
        for path in ("/ingest", "/stream"):
            free = await client.get(path)
            assert (free.status, "RateLimit" in free.headers) == (200, False)
