"""Retries and errors of both clients, against a server that fails by a script."""

import asyncio
import importlib
import inspect
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from tests.clients.faulty_server import FaultyServer, answer

EVENT: Final = {
    "carrier_id": "ups",
    "event_id": "S-1",
    "tracking_number": "T1",
    "occurred_at": "2026-05-01T10:00:00+02:00",
}
APPENDED: Final = answer(
    201,
    b'{"verdict": "appended", "event_id": "S-1", "message_id":'
    b' "01a1fd68-1248-7654-afe4-b7db9f4948ad"}',
)
QUEUE: Final = answer(200, b'{"items": [], "next_cursor": null}')
LIMITED: Final = answer(
    429, b'{"code": "too_many_requests", "detail": "wait"}', headers="Retry-After: 0\r\n"
)
AWAY: Final = answer(503, b'{"code": "database_unavailable", "detail": "away"}')
PROXY: Final = answer(502, b"<html>Bad Gateway</html>")
HALF: Final = QUEUE[:-5]
CUT: Final = b""
SILENCE: Final = None

Call = Callable[[Any], Any]


def read(client: Any) -> Any:
    return client.subscriptions.list()


def submit(client: Any) -> Any:
    return client.events.submit(EVENT)


def subscribe(client: Any) -> Any:
    return client.subscriptions.create("https://example.com/hook")


def rotate(client: Any) -> Any:
    return client.subscriptions.rotate_secret("c4a760a8-dbcf-5254-a0d9-6a4474bd1b62")


@pytest.fixture(params=["Client", "AsyncClient"])
def make_call(
    request: pytest.FixtureRequest, installed_client: Path
) -> Callable[[str, Call], Awaitable[Any]]:
    """Make a call with the client of one world; waits between tries are short."""
    assert installed_client.is_dir()
    package = importlib.import_module("statesvc_client")
    policy = importlib.import_module("statesvc_client.retries").RetryPolicy(
        first_wait=0.01, longest_wait=0.02
    )
    kind = getattr(package, request.param)

    def in_thread(url: str, call: Call) -> Any:
        with kind(url, key="k", timeout=1.0, retries=policy) as client:
            answered = call(client)
            return list(answered) if inspect.isgenerator(answered) else answered

    async def make(url: str, call: Call) -> Any:
        if request.param == "Client":
            return await asyncio.to_thread(in_thread, url, call)
        async with kind(url, key="k", timeout=1.0, retries=policy) as client:
            answered = call(client)
            return (
                [item async for item in answered]
                if inspect.isasyncgen(answered)
                else await answered
            )

    return make


@pytest.mark.parametrize(
    ("call", "script", "tries"),
    [
        (read, [LIMITED, AWAY, PROXY, QUEUE], 4),
        (read, [CUT, HALF, SILENCE, QUEUE], 4),
        (submit, [AWAY, CUT, SILENCE, APPENDED], 4),
        (submit, [LIMITED, APPENDED], 2),
    ],
)
async def test_what_has_no_second_effect_is_repeated(
    make_call: Callable[[str, Call], Awaitable[Any]],
    call: Call,
    script: list[bytes | None],
    tries: int,
) -> None:
    async with FaultyServer(script).running() as server:
        await make_call(server.url, call)
        assert len(server.requests) == tries


@pytest.mark.parametrize(
    ("call", "script", "error", "tries"),
    [
        (subscribe, [AWAY], "UnavailableError", 1),
        (subscribe, [LIMITED], "TooManyRequestsError", 4),
        (subscribe, [CUT], "RemoteProtocolError", 1),
        (subscribe, [SILENCE], "ReadTimeout", 1),
        (rotate, [PROXY], "UnavailableError", 1),
        (rotate, [HALF], "RemoteProtocolError", 1),
        (read, [AWAY], "UnavailableError", 4),
        (read, [CUT], "RemoteProtocolError", 4),
        (read, [answer(500, b'{"code": "internal_error"}')], "ServerError", 1),
        (read, [answer(401, b'{"code": "unauthenticated"}')], "UnauthorizedError", 1),
        (
            read,
            [answer(403, b'{"code": "missing_scope", "required_scope": "ops"}')],
            "ForbiddenError",
            1,
        ),
        (read, [answer(404)], "NotFoundError", 1),
        (read, [answer(409)], "ConflictError", 1),
        (read, [answer(410)], "CursorLostError", 1),
        (read, [answer(422)], "UnprocessableError", 1),
        (read, [answer(418)], "ApiError", 1),
        (read, [answer(429, headers="Retry-After: 3600\r\n")], "TooManyRequestsError", 1),
    ],
)
async def test_what_stays_wrong_is_raised_and_a_second_effect_never_risked(
    make_call: Callable[[str, Call], Awaitable[Any]],
    call: Call,
    script: list[bytes | None],
    error: str,
    tries: int,
) -> None:
    async with FaultyServer(script).running() as server:
        with pytest.raises(Exception) as raised:  # noqa: PT011 - the kind is compared by its name
            await make_call(server.url, call)
        assert (type(raised.value).__name__, len(server.requests)) == (error, tries)


@pytest.mark.parametrize(
    ("printed", "shortest", "longest"),
    [
        ("7", 7, 7),
        ("Sat, 01 Jan 2000 00:00:00 GMT", 0.2, 0.5),
        ("soon", 0.2, 0.5),
        ("61", None, None),
    ],
)
@pytest.mark.usefixtures("installed_client")
def test_a_pause_that_is_asked_for_is_kept_up_to_a_minute(
    printed: str, shortest: float | None, longest: float | None
) -> None:
    policy = importlib.import_module("statesvc_client.retries").RetryPolicy()
    asked = httpx.Response(429, headers={"Retry-After": printed})
    wait = policy.wait_after_answer(
        httpx.Request("GET", "http://service/v1/queue"), asked, repeats=0
    )
    assert wait is None if shortest is None or longest is None else shortest <= wait <= longest


async def test_a_call_is_repeated_until_a_connection_is_made(
    make_call: Callable[[str, Call], Awaitable[Any]],
) -> None:
    server = FaultyServer([answer(404)])
    with pytest.raises(httpx.ConnectError):
        await make_call(server.url, subscribe)
    async with server.running():
        with pytest.raises(Exception, match="404"):
            await make_call(server.url, subscribe)


async def test_an_error_has_the_problem_and_says_it_in_one_line(
    make_call: Callable[[str, Call], Awaitable[Any]],
) -> None:
    problem = (
        b'{"code": "invalid_request", "detail": "the query breaks the contract", "errors":'
        b' [{"pointer": "/limit", "detail": "too many"}]}'
    )
    async with FaultyServer([answer(422, problem)]).running() as server:
        with pytest.raises(
            Exception, match=r"422 invalid_request: the query breaks the contract; /limit too many"
        ) as raised:
            await make_call(server.url, read)
    assert raised.value.code == "invalid_request"  # type: ignore[attr-defined]


@pytest.mark.usefixtures("installed_client")
@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("localhost:8080", "with its scheme"),
        ("", "with its scheme"),
        ("http://localhost:8080/v1/", "should end before /v1"),
    ],
)
def test_an_address_that_no_call_could_reach_is_refused_at_once(url: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        importlib.import_module("statesvc_client").Client(url, key="k")


@pytest.mark.usefixtures("installed_client")
def test_a_key_may_end_as_its_file_does() -> None:
    with importlib.import_module("statesvc_client").Client(
        "http://localhost:1/", key="ss_key\n"
    ) as client:
        assert client.http.headers["Authorization"] == "Bearer ss_key"


async def test_a_list_in_place_of_numbers_is_refused(
    make_call: Callable[[str, Call], Awaitable[Any]],
) -> None:
    with pytest.raises(TypeError, match=r"of a list: lookup\(\*numbers\)"):
        await make_call(
            "http://localhost:1", lambda client: client.shipments.lookup(["1Z1", "1Z2"])
        )


async def test_an_event_may_hold_times(make_call: Callable[[str, Call], Awaitable[Any]]) -> None:
    event = {**EVENT, "occurred_at": datetime(2026, 5, 1, 10, tzinfo=UTC)}
    async with FaultyServer([APPENDED]).running() as server:
        assert (
            await make_call(server.url, lambda client: client.events.submit(event))
        ).verdict == "appended"
