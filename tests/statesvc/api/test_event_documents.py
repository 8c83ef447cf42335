"""One table of notifications: its examples are what is sent, and every document is made of it."""

from collections.abc import Iterator
from typing import Any

from jsonschema_rs import Draft202012Validator

from projections.notification_type import NotificationType
from statesvc.api.event_documents import example_body, hooks
from statesvc.delivery.event_catalogue import CONNECTION_TEST, EVENT_TYPES
from statesvc.http.openapi import build_document
from tests.contract import check_openapi, closed_words, exact, hook_validator
from tests.events_page import PAGE, page
from tests.openapi_document import document


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
    for webhook in document["webhooks"].values():
        named = {given["name"] for given in webhook["post"]["parameters"]}
        assert named == {"webhook-id", "webhook-timestamp", "webhook-signature"}
        assert webhook["post"]["requestBody"]["content"]["application/json"]["examples"]


def test_the_page_is_that_of_the_table() -> None:
    assert PAGE.read_text("utf-8") == page(), "run python -m tests.events_page"


WITHOUT_EXAMPLE = {
    "application/cose",
    "application/octet-stream",
    "text/event-stream",
    "text/plain",
}


def bodies(described: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the bodies of requests and good answers, as far as they are text."""
    for calls in described["paths"].values():
        for call in calls.values():
            answers = [
                answer for status, answer in call["responses"].items() if status.startswith("2")
            ]
            for place in (call.get("requestBody", {}), *answers):
                for media_type, content in place.get("content", {}).items():
                    if media_type not in WITHOUT_EXAMPLE:
                        yield f"{call['operationId']} {media_type}", content


def test_the_document_is_valid_and_each_body_has_an_example_that_fits_its_schema() -> None:
    whole = document()
    check_openapi(whole)
    described = exact(closed_words(whole))
    found = list(bodies(described))
    missing = [name for name, content in found if "example" not in content]
    assert missing == [], "run python -m tests.call_examples"
    # one schema of all: each would compile the components anew
    schemas, examples = [], []
    for name, content in found:
        if name.endswith(" application/json"):
            schemas.append(content["schema"])
            examples.append(content["example"])
    assert len(examples) > len(described["paths"])
    schema = {"prefixItems": schemas, "components": described["components"]}
    Draft202012Validator(schema, validate_formats=True).validate(examples)
