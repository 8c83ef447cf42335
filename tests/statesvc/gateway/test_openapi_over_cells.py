"""The gateway's document: the cells' own, with what the gateway adds."""

import re
from typing import Any

import pytest

from statesvc.gateway.openapi_over_cells import document_over_cells
from tests.openapi_document import document

SPANNING = {
    "list_shipments": "Over all.",
    "get_shipment_by_id": "Of the one that has it.",
    "create_subscription": "In all.",
    "read_feed": "Of all.",
    "stream_transitions": "Of all.",
}


@pytest.fixture(scope="module")
def original() -> dict[str, Any]:
    return document()


@pytest.fixture(scope="module")
def changed(original: dict[str, Any]) -> dict[str, Any]:
    return document_over_cells(original, SPANNING, ["north", "south"])


def parameter(described: dict[str, Any]) -> bool | None:
    """Whether the header is required; None: it is not there."""
    return next((one["required"] for one in described.get("parameters", []) if one["name"] == "Statesvc-Cell"), None)


def test_calls_of_one_cell_take_its_name_and_those_that_span_cells_may(changed: dict[str, Any]) -> None:
    wanted = {
        ("/v1/shipments", "get"): False,
        ("/v1/checkpoint", "get"): True,
        ("/v1/notices", "get"): True,
        ("/v1/shipments/{carrier_id}/{tracking_number}", "get"): None,
        ("/v1/webhooks/{carrier_id}", "post"): None,
        ("/livez", "get"): None,
    }
    assert {call: parameter(changed["paths"][call[0]][call[1]]) for call in wanted} == wanted


@pytest.mark.parametrize(("path", "name"), [("/v1/feed", "after"), ("/v1/stream", "after"), ("/v1/stream", "Last-Event-ID")])
def test_places_in_each_log_are_in_the_contract(changed: dict[str, Any], path: str, name: str) -> None:
    (schema,) = (one["schema"] for one in changed["paths"][path]["get"]["parameters"] if one["name"] == name)
    pattern = schema.get("pattern") or next(each["pattern"] for each in schema["anyOf"] if "pattern" in each)
    for place in ("north=1.57,south=-1", "south=now", "1.57"):
        assert re.search(pattern, place), place
    for wrong in ("north", "north=1.57,", "north=x", ""):
        assert re.search(pattern, wrong) is None, wrong
    assert any(rule.startswith(f"`{name}` is a place") for rule in changed["paths"][path]["get"]["x-rules"])


def test_members_that_a_merged_answer_has_by_cell_are_not_promised(changed: dict[str, Any], original: dict[str, Any]) -> None:
    for name, member in (("Feed", "tree_size"), ("SubscriptionDetail", "limiter")):
        assert member in original["components"]["schemas"][name]["required"]
        assert member not in changed["components"]["schemas"][name]["required"]


def test_what_spans_cells_says_so_and_names_what_is_missing(changed: dict[str, Any], original: dict[str, Any]) -> None:
    listed = changed["paths"]["/v1/shipments"]["get"]
    before, added = listed["responses"]["200"]["content"]["application/json"]["schema"]["allOf"]
    assert (list(added["properties"]), listed["description"].endswith("Over all.")) == (["partial"], True)
    assert before == original["paths"]["/v1/shipments"]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    one = changed["paths"]["/v1/shipments/{shipment_id}"]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    assert "allOf" not in one
