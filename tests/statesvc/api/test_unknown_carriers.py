"""A carrier that does not exist is refused by every call that takes one, as a filter too, with
what was probably meant.
"""

import json
import re
from collections.abc import Mapping
from importlib.resources import files
from typing import Any, Final
from uuid import UUID

import pytest
from pydantic import ValidationError

from statesvc.api.transition_operations import TransitionChoice
from statesvc.cli.operation_table import ListedOperation, operation_named
from statesvc.http.keys.key_store import Scope
from tests.world.api import Api

MISSPELT: Final = "dhl_expres"
MEANT: Final = "did you mean `dhl_express`?"
PLACEHOLDERS: Final = {
    "carrier_id": MISSPELT,
    "tracking_number": "1",
    "revision": 1,
    "subscription_id": UUID(int=1),
}
BODIES: Final[Mapping[str, Mapping[str, Any]]] = {
    "await_shipment": {"hours": 3},
    "change_expectations": {"rules": {}, "why": "test"},
    "change_quota": {"weight": 2, "why": "test"},
    "change_rollout": {"percent": 0},
    "create_subscription": {"url": "https://receiver.example/hook"},
    "discard_dead_letters": {"why": "test"},
    "erase_shipment": {"why": "test"},
    "make_shipment_evidence": {"case": "1"},
    "place_legal_hold": {"tracking_number": "1", "why": "test"},
    "preview_code_mapping": {"raw_code": "X", "meaning": {"kind": "info"}},
    "preview_expectations": {"rules": {}},
    "put_subscription": {"url": "https://receiver.example/hook"},
    "release_legal_hold": {"tracking_number": "1", "why": "test"},
    "renormalize_carrier": {"why": "test"},
    "renormalize_code_mapping": {"why": "test"},
    "set_shipment_references": {"order_id": "1"},
    "teach_code": {"raw_code": "X", "meaning": {"kind": "info"}, "why": "test"},
}
NAMES: Final = frozenset({"carrier_id", "carriers"})
ELSEWHERE: Final = ("/v1/stream", "/v1/feed/transitions")
QUERIES: Final[Mapping[str, Mapping[str, str]]] = {"prove_inclusion": {"event_id": "1"}}


async def test_a_misspelt_carrier_is_refused_with_what_was_meant(api: Api) -> None:
    told = {operation.operation_id: await _told(api, operation) for operation in _operations()}
    assert {
        operation_id: said
        for operation_id, said in told.items()
        if not any(MEANT in text for text in said)
    } == {}


def test_a_choice_of_transitions_of_a_misspelt_carrier_is_refused() -> None:
    with pytest.raises(ValidationError, match=re.escape(MEANT)):
        TransitionChoice(carrier_id=[MISSPELT])


def _operations() -> list[ListedOperation]:
    """Return those that take a carrier; the stream's are served by routes of their own."""
    table = json.loads(files("statesvc.cli").joinpath("operation_table.json").read_bytes())
    operations = [operation_named(operation_id) for operation_id in table]
    return [
        each
        for each in operations
        if NAMES & each.fields.keys() and not each.where.split()[1].startswith(ELSEWHERE)
    ]


async def _told(api: Api, operation: ListedOperation) -> list[str]:
    method, path = operation.where.split()
    reply = await api.call(
        method,
        path.format_map(PLACEHOLDERS),
        scopes=" ".join(Scope),
        params=_carrier(operation, "query") | dict(QUERIES.get(operation.operation_id, {})),
        json=_carrier(operation, "body") | dict(BODIES.get(operation.operation_id, {}))
        if method != "GET"
        else None,
    )
    if reply.status not in {404, 422}:
        return [f"{reply.status}"]
    return [reply.body["detail"], *(flaw["detail"] for flaw in reply.body.get("errors", ()))]


def _carrier(operation: ListedOperation, place: str) -> dict[str, Any]:
    fields = [
        field for name, field in operation.fields.items() if name in NAMES and field.place == place
    ]
    return {
        field.name: [MISSPELT] if field.many or field.type == "array" else MISSPELT
        for field in fields
    }
