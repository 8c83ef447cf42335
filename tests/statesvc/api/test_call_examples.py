"""The examples of the document were recorded, are complete, and fit their schemas.

Clients get them: tests/clients.
"""

from collections.abc import Iterator
from typing import Any

from jsonschema_rs import Draft202012Validator

from tests.contract import check_openapi, closed_words, exact
from tests.openapi_document import document

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
