"""The document is valid OpenAPI 3.1 and says what is checked."""

from typing import Annotated, NotRequired

from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import TypedDict

from statesvc.http.app import build_app
from statesvc.http.documentation import documentation_routes
from statesvc.http.keys.api_keys import Keys
from statesvc.http.keys.key_store import Scope
from statesvc.http.openapi import build_document
from statesvc.http.operation import Reply, Route, answer, operation
from statesvc.http.paging import Page, PageParameters
from statesvc.http.problem import CREATED, Code


class Colour(BaseModel):
    name: str


class Paint(BaseModel):
    model_config = ConfigDict(extra="forbid")

    colour: Colour
    litres: Annotated[int, Field(gt=0, description="How much.")]


class Wanted(PageParameters):
    colours: list[str] | None = None
    since: Annotated[str | None, Field(alias="from")] = None


class Sold(TypedDict):
    colour: str
    litres: NotRequired[int]


async def stock(_request: web.Request) -> Reply[Page[Sold]]:
    return answer(Page([], None))


async def buy(_request: web.Request) -> Reply[Sold]:
    return answer({"colour": "red"})


ROUTES = [
    Route(
        "GET",
        "/v1/paints/{shop}",
        stock,
        operation(
            operation_id="call_1",
            summary="List",
            scope="read",
            parameters=Wanted,
            response=Page[Sold],
        ),
    ),
    Route(
        "POST",
        "/v1/paints/{shop}",
        buy,
        operation(
            operation_id="call_2",
            summary="Buy",
            scope=Scope.OPS,
            request=Paint,
            response=Sold,
            statuses={CREATED: "bought"},
            problems=(Code.CONFLICT, Code.HELD, Code.NOT_READY),
        ),
    ),
]


def test_the_document_says_what_is_checked() -> None:
    document = build_document(ROUTES, version="1")
    listing, buying = (
        document["paths"]["/v1/paints/{shop}"]["get"],
        document["paths"]["/v1/paints/{shop}"]["post"],
    )
    assert {(given["name"], given["in"], given["required"]) for given in listing["parameters"]} == {
        ("shop", "path", True),
        ("limit", "query", False),
        ("cursor", "query", False),
        ("colours", "query", False),
        ("from", "query", False),
    }
    assert (listing["security"], buying["security"]) == ([{"key": ["read"]}], [{"key": ["ops"]}])
    assert set(buying["responses"]) == {"201", "401", "403", "409", "422", "429", "503", "default"}
    assert buying["requestBody"]["content"]["application/json"]["schema"] == {
        "$ref": "#/components/schemas/Paint"
    }
    schemas = document["components"]["schemas"]
    assert buying["responses"]["201"]["content"]["application/json"]["schema"] == {
        "$ref": "#/components/schemas/Sold"
    }
    assert (schemas["Sold"]["required"], schemas["SoldPage"]["required"]) == (
        ["colour"],
        ["items", "next_cursor"],
    )
    assert "held" in buying["responses"]["503"]["description"]
    assert "not_ready" in buying["responses"]["503"]["description"]


async def test_it_is_served_with_a_page_that_loads_nothing_from_elsewhere() -> None:
    app = build_app([*ROUTES, *documentation_routes(ROUTES, version="1")], keys=Keys(None))  # type: ignore[arg-type]
    async with TestClient(TestServer(app)) as client:
        assert (await (await client.get("/openapi.json")).json()) == build_document(
            ROUTES, version="1"
        )
        page = await client.get("/")
        assert page.url.path == "/docs"
        text = await page.text()
        assert page.headers["Content-Security-Policy"].startswith("default-src 'none'")
        assert "://" not in text
