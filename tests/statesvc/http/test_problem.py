"""Every way out of the service is a problem of one shape, in words of its own."""

import asyncio
from collections.abc import AsyncIterator
from datetime import date, timedelta
from enum import StrEnum
from typing import Annotated, Any

import orjson
import psycopg
import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from events.carriers import CARRIERS
from statesvc.database.pool import PoolBusyError
from statesvc.http.app import build_app
from statesvc.http.call import WHY_HEADER, why_details
from statesvc.http.closed_model import ClosedModel
from statesvc.http.keys.api_keys import Keys
from statesvc.http.middleware import invalid
from statesvc.http.operation import BODY, Handler, Route, header_text, operation, parameters
from statesvc.http.problem import OK, PROBLEM_KINDS, Code, Problem
from statesvc.http.unknown_carrier import no_such_carrier
from tests.errors_page import PAGE, page

Client = TestClient[web.Request, web.Application]


class Wanted(BaseModel):
    model_config = ConfigDict(extra="forbid")

    size: int = Field(ge=1)
    words: list[str] = []


class Thing(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str
    count: int


async def echo(request: web.Request) -> web.StreamResponse:
    wanted, thing = parameters(request, Wanted), request[BODY]
    assert isinstance(thing, Thing)
    return web.json_response({"size": wanted.size, "words": wanted.words, "name": thing.name})


def failing(error: Exception) -> Handler:
    async def handler(_request: web.Request) -> web.StreamResponse:
        raise error

    return handler


async def why(request: web.Request) -> web.StreamResponse:
    return web.json_response(why_details(header_text(request.headers.get(WHY_HEADER, ""))))


async def slow(_request: web.Request) -> web.StreamResponse:
    await asyncio.Event().wait()
    raise AssertionError


ROUTES = [
    Route(
        "POST",
        "/echo/{place}",
        echo,
        operation(operation_id="call_1", summary="", scope=None, parameters=Wanted, request=Thing),
    ),
    Route(
        "GET",
        "/plain",
        failing(Problem(Code.CONFLICT, "was sold")),
        operation(operation_id="call_2", summary="", scope=None),
    ),
    Route(
        "GET",
        "/defect",
        failing(RuntimeError("Mrs Miller lives there")),
        operation(operation_id="call_3", summary="", scope=None),
    ),
    Route(
        "GET",
        "/away",
        failing(psycopg.OperationalError("connection to Mrs Miller failed")),
        operation(operation_id="call_4", summary="", scope=None),
    ),
    Route(
        "GET",
        "/busy",
        failing(PoolBusyError("no connection was free")),
        operation(operation_id="call_8", summary="", scope=None),
    ),
    Route(
        "GET",
        "/broken",
        failing(psycopg.errors.UndefinedTable("no table")),
        operation(operation_id="call_5", summary="", scope=None),
    ),
    Route("GET", "/why", why, operation(operation_id="call_7", summary="", scope=None)),
    Route(
        "GET",
        "/slow",
        slow,
        operation(operation_id="call_6", summary="", scope=None, deadline_seconds=0.05),
    ),
]


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    app = build_app(ROUTES, keys=Keys(None), body_bytes_max=1000)  # type: ignore[arg-type]
    async with TestClient(TestServer(app)) as client:
        yield client


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nowhere", 404, "not_found"),
        ("DELETE", "/plain", 405, "method_not_allowed"),
        ("GET", "/plain", 409, "conflict"),
        ("GET", "/plain?limit=3", 422, "invalid_request"),
        ("GET", "/defect", 500, "internal_error"),
        ("GET", "/broken", 500, "internal_error"),
        ("GET", "/away", 503, "database_unavailable"),
        ("GET", "/busy", 429, "too_many_requests"),
        ("GET", "/slow", 503, "timed_out"),
    ],
)
async def test_each_error_is_a_problem_with_its_code(
    client: Client, method: str, path: str, status: int, code: str
) -> None:
    answer = await client.request(method, path)
    problem = await answer.json(content_type="application/problem+json")
    assert (answer.status, problem["status"], problem["code"]) == (status, status, code)
    assert problem["title"] == PROBLEM_KINDS[Code(code)].title
    assert problem["type"] == f"/docs#problem-{code}"
    assert "Miller" not in await answer.text()
    assert ("Retry-After" in answer.headers) == (status in {429, 503})
    assert ("Allow" in answer.headers) == (status == 405)


async def test_what_fits_the_contract_reaches_the_handler(client: Client) -> None:
    answer = await client.post("/echo/x?size=2&words=a&words=b", json={"name": "n", "count": 1})
    assert answer.status == OK
    assert await answer.json() == {"size": 2, "words": ["a", "b"], "name": "n"}


@pytest.mark.parametrize(
    ("query", "pointer"),
    [
        ("size=0", "/query/size"),
        ("", "/query/size"),
        ("size=1&colour=red", "/query/colour"),
        ("size=1&size=2", "/query/size"),
    ],
)
async def test_a_parameter_outside_the_contract_is_named(
    client: Client, query: str, pointer: str
) -> None:
    answer = await client.post(f"/echo/x?{query}", json={"name": "n", "count": 1})
    assert answer.status == 422
    assert [error["pointer"] for error in (await answer.json(content_type=None))["errors"]] == [
        pointer
    ]


async def test_a_wrong_body_is_refused_without_quoting_it(client: Client) -> None:
    answer = await client.post(
        "/echo/x?size=1", json={"name": "n", "count": "Mrs Miller", "more": 1}
    )
    problem = await answer.json(content_type=None)
    assert answer.status == 422
    assert {error["pointer"] for error in problem["errors"]} == {"/body/count", "/body/more"}
    assert "Miller" not in str(problem)


@pytest.mark.parametrize(
    ("count", "status"),
    [
        ("1.0", 200),
        ("1e3", 200),
        ("1.5", 422),
        ("1e400", 422),
        ("true", 422),
        ('"1"', 422),
        ("1" + "0" * 400 + ".0", 422),
    ],
)
async def test_an_integer_is_what_json_schema_calls_one(
    client: Client, count: str, status: int
) -> None:
    document = f'{{"name": "n", "count": {count}}}'
    answer = await client.post(
        "/echo/x?size=1", data=document, headers={"Content-Type": "application/json"}
    )
    assert answer.status == status


async def test_a_reason_in_a_header_is_utf_8_or_iso_8859_1(client: Client) -> None:
    for written in ("gelöscht".encode(), "gelöscht".encode("latin-1")):
        reader, writer = await asyncio.open_connection(client.host, client.port)
        writer.write(
            b"GET /why HTTP/1.1\r\nHost: x\r\nConnection: close\r\nStatesvc-Why: "
            + written
            + b"\r\n\r\n"
        )
        assert orjson.loads((await reader.read()).rpartition(b"\r\n")[2]) == {"why": "gelöscht"}
        writer.close()


async def test_a_body_that_is_no_json_or_too_large_is_refused(client: Client) -> None:
    assert (
        await client.post("/echo/x?size=1", data=b"{", headers={"Content-Type": "application/json"})
    ).status == 422
    assert (
        await client.post("/echo/x?size=1", data=b"<a/>", headers={"Content-Type": "text/xml"})
    ).status == 415
    answer = await client.post(
        "/echo/x?size=1", data=b" " * 1001, headers={"Content-Type": "application/json"}
    )
    assert (answer.status, (await answer.json(content_type=None))["code"]) == (413, "too_large")


def test_each_code_is_in_the_table_and_the_table_is_the_page() -> None:
    assert set(PROBLEM_KINDS) == set(Code)
    assert page() == PAGE.read_text("utf-8"), "write it: python -m tests.errors_page"


async def test_an_empty_part_of_a_path_is_named(client: Client) -> None:
    assert "a part of it is empty" in await (await client.get("/plain//x")).text()
    assert "a part of it is empty" in await (await client.get("/echo/")).text()
    assert "no such path; /docs" in await (await client.get("/nowhere")).text()


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("dhl", "no such carrier_id: did you mean `dhl_ecommerce` or `dhl_express` or"),
        ("zzzzzz", "no such carrier_id; `statesvc carriers` lists them"),
        ("UPS", "`ups`"),
        ("usp", "`usps`"),
        ("Royal Mail", ""),
        ("dhl-express", "`dhl_express`"),
        ("fed", "`fedex`"),
    ],
)
def test_the_carrier_that_was_meant_is_named(written: str, meant: str) -> None:
    assert meant in no_such_carrier(written, CARRIERS)


class Word(StrEnum):
    """Two words."""

    A = "a"
    B = "b"


class FieldFace(ClosedModel):
    """One member of each kind."""

    name: Annotated[str | None, Field(min_length=1, max_length=4)] = None
    count: Annotated[int | None, Field(ge=1, le=9)] = None
    is_good: bool = False
    at: AwareDatetime | None = None
    day: date | None = None
    wait: timedelta | None = None
    numbers: Annotated[list[str] | None, Field(min_length=1)] = None
    word: Word = Word.A


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"name": 4711}, "should be a text, in quotes"),
        ({"name": ""}, "is empty"),
        ({"name": "abcde"}, "should have at most 4 characters"),
        ({"count": "x"}, "should be an integer, without quotes"),
        ({"count": 0}, "should be at least 1"),
        ({"count": 10}, "should be at most 9"),
        ({"is_good": "maybe"}, "should be true or false"),
        ({"at": "2026-05-03"}, "should be a time with its offset, such as 2026-03-01T14:05:00Z"),
        (
            {"at": "2026-05-03T00:00:00"},
            "should be a time with its offset, such as 2026-03-01T14:05:00Z",
        ),
        (
            {"at": "2026-02-30T00:00:00Z"},
            "should be a time with its offset, such as 2026-03-01T14:05:00Z",
        ),
        ({"at": "03.05.2026"}, "should be a time with its offset, such as 2026-03-01T14:05:00Z"),
        ({"day": "1 May"}, "should be a day, such as 2026-03-01"),
        ({"wait": "long"}, "should be a duration, such as P3D or PT36H"),
        ({"numbers": "1Z"}, "should be a list: [...]"),
        ({"numbers": []}, "should have at least 1 member"),
        ({"word": "c"}, "should be 'a' or 'b'"),
        (
            {"colour": 1},
            (
                "is no member of this object; it takes: at, count, day, is_good, name, numbers,"
                " wait, word"
            ),
        ),
    ],
)
def test_each_mistake_is_told_in_one_sentence(given: dict[str, Any], text: str) -> None:
    with pytest.raises(ValidationError) as raised:
        FieldFace.model_validate(given)
    problem = invalid(raised.value, "body", FieldFace)
    assert [violation.detail for violation in problem.violations] == [text]
