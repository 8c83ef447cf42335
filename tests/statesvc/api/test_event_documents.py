"""One table of notifications: its examples are what is sent, and every document is made of it."""

from projections.notification_type import NotificationType
from statesvc.api.event_documents import example_body, hooks
from statesvc.delivery.event_catalogue import CONNECTION_TEST, EVENT_TYPES
from statesvc.http.openapi import build_document
from tests.contract import hook_validator
from tests.events_page import PAGE, page


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
