"""Limits of one key in a process, at a time and in a second."""

from contextlib import ExitStack
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from statesvc.http.app import build_app
from statesvc.http.keys.api_keys import Keys
from statesvc.http.keys.key_limits import KeyLimits
from statesvc.http.operation import Reply, Route, answer, operation
from statesvc.http.problem import Code, Problem
from tests.statesvc.conftest import HandClock

BOOTSTRAP_KEY = "a" * 24


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


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
    app = build_app(routes, keys=Keys(None, bootstrap_key=BOOTSTRAP_KEY), limits=limits)  # type: ignore[arg-type]
    headers = {"Authorization": f"Bearer {BOOTSTRAP_KEY}"}
    async with TestClient(TestServer(app), headers=headers) as client:
        shown = [await client.get("/who") for _ in range(3)]
        assert [(answer.status, answer.headers["RateLimit"].split(";")[1]) for answer in shown] == [
            (200, "r=1"),
            (200, "r=0"),
            (429, "r=0"),
        ]
        assert shown[2].headers["Retry-After"] == "1"
        refused = await client.get("/who?x=1")
        assert refused.headers["RateLimit-Policy"] == '"key";q=2;w=2'
        for path in ("/ingest", "/stream"):
            free = await client.get(path)
            assert (free.status, "RateLimit" in free.headers) == (200, False)
