"""The document says what is checked, and is served with its page."""

from aiohttp.test_utils import TestClient, TestServer

from statesvc.http.app import build_app
from statesvc.http.documentation import documentation_routes
from statesvc.http.introduction import TAGS
from statesvc.http.keys.api_keys import Keys
from statesvc.http.openapi import build_document
from tests.openapi_document import document


def test_the_document_says_what_is_checked() -> None:
    paths, schemas = document()["paths"], document()["components"]["schemas"]
    listing = paths["/v1/shipments/{carrier_id}/{tracking_number}/history"]["get"]
    assert {
        (given["name"], given["in"], given["required"])
        for given in listing["parameters"]
        if given["name"] != "max_staleness"
    } == {
        ("carrier_id", "path", True),
        ("tracking_number", "path", True),
        *((name, "query", False) for name in ("limit", "cursor", "as_of", "discriminator")),
        ("include", "query", False),
    }
    submitting = paths["/v1/keys"]["post"]
    assert (listing["security"], submitting["security"]) == (
        [{"key": ["read"]}],
        [{"key": ["admin"]}],
    )
    assert {"201", "401", "403", "422", "429", "default"} <= submitting["responses"].keys()
    (asked,) = submitting["requestBody"]["content"]["application/json"]["schema"].values()
    assert {"name", "scopes"} == set(schemas[asked.rpartition("/")[2]]["required"])
    assert "`held`" in paths["/v1/events"]["post"]["responses"]["503"]["description"]


async def test_it_is_served_with_a_page_that_loads_nothing_from_elsewhere() -> None:
    app = build_app([*documentation_routes([], version="1")], keys=Keys(None))  # type: ignore[arg-type]
    async with TestClient(TestServer(app)) as client:
        assert (await (await client.get("/openapi.json")).json()) == build_document([], version="1")
        page = await client.get("/")
        assert page.url.path == "/docs"
        text = await page.text()
        assert page.headers["Content-Security-Policy"].startswith("default-src 'none'")
        assert "://" not in text


def test_every_part_of_the_page_has_its_place() -> None:
    tags = {call["tags"][0] for calls in document()["paths"].values() for call in calls.values()}
    assert tags <= set(TAGS)
