"""One table of notifications: its examples are what is sent, and every document is made of it."""

import json
import os
from pathlib import Path

import pytest
from jsonschema_rs import Draft7Validator, Draft202012Validator

from projections.notification_type import NotificationType
from statesvc.api.event_documents import asyncapi_document, example_body, examples, hooks
from statesvc.delivery.event_catalogue import CONNECTION_TEST, EVENT_TYPES
from statesvc.http.openapi import build_document
from tests.contract import hook_validator
from tests.events_page import PAGE, page

SCHEMA = (
    Path(__file__).parents[3]
    / "tests"
    / "node"
    / "node_modules"
    / "@asyncapi"
    / "specs"
    / "schemas"
    / "3.0.0.json"
)


def test_every_type_is_in_the_catalogue_once() -> None:
    assert [each.kind for each in EVENT_TYPES] == [*NotificationType, CONNECTION_TEST]
    assert len({each.name for each in EVENT_TYPES}) == len(EVENT_TYPES)


def test_its_examples_are_as_documented() -> None:
    for event_type in EVENT_TYPES:
        test = {} if event_type.kind == CONNECTION_TEST else {"test": True}
        for data in (
            event_type.thin,
            event_type.full,
            event_type.personal,
            {**event_type.full, **test},
        ):
            hook_validator().validate(example_body(event_type, data))


def test_openapi_has_them_as_webhooks() -> None:
    document = build_document([], version="1", hooks=hooks())
    assert list(document["webhooks"]) == [each.kind for each in EVENT_TYPES]
    # one schema of all: each would compile the components anew
    schemas, examples = [], []
    for each in EVENT_TYPES:
        post = document["webhooks"][each.kind]["post"]
        content = post["requestBody"]["content"]["application/json"]
        for example in content["examples"].values():
            schemas.append(content["schema"])
            examples.append(example["value"])
        assert {given["name"] for given in post["parameters"]} == {
            "webhook-id",
            "webhook-timestamp",
            "webhook-signature",
        }
    schema = {"prefixItems": schemas, "components": document["components"]}
    Draft202012Validator(schema).validate(examples)


def test_asyncapi_is_valid_by_its_official_schema() -> None:
    if not SCHEMA.exists():
        if os.environ.get("CI") == "true":
            pytest.fail("npm ci --prefix tests/node")
        pytest.skip("the official schema comes by `npm ci --prefix tests/node`")
    document = asyncapi_document(version="1")
    Draft7Validator(json.loads(SCHEMA.read_text("utf-8"))).validate(
        json.loads(json.dumps(document))
    )
    assert {message["name"] for message in document["components"]["messages"].values()} == {
        each.kind for each in EVENT_TYPES
    }
    for message in document["components"]["messages"].values():
        payload = Draft202012Validator({**message["payload"], "components": document["components"]})
        assert message["examples"]
        for example in message["examples"]:
            payload.validate(example["payload"])
    nats = document["components"]["messages"]["nats_ShipmentStatusChanged"]
    assert {"ce-id", "ce-sequence", "webhook-signature"} <= nats["headers"]["properties"].keys()
    assert [each["payload"] for each in nats["examples"]] == [*examples(EVENT_TYPES[0]).values()]


def test_the_page_is_that_of_the_table() -> None:
    assert PAGE.read_text("utf-8") == page(), "run python -m tests.events_page"
