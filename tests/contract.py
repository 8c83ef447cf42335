"""Holds every answer of a tested API against the OpenAPI document of its routes: what is
shown is what is sent.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from jsonschema_rs import Draft202012Validator

from statesvc.api.event_documents import hooks
from statesvc.http.openapi import build_document
from statesvc.http.operation import Route

_CONTRACTS: dict[frozenset[tuple[str, str]], "Contract"] = {}


def contract_of(routes: Sequence[Route]) -> "Contract":
    """Return the contract of these routes.

    It is the same for every server of a run, and takes 0.2 s to build.
    """
    calls = frozenset((route.method, route.path) for route in routes)
    if calls not in _CONTRACTS:
        _CONTRACTS[calls] = Contract(routes)
    return _CONTRACTS[calls]


class Contract:
    """The documented answers, strictly: a member that is not documented is a fault."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._document = exact(closed_words(build_document(routes, version="test")))
        self._validators: dict[tuple[str, str, str], Draft202012Validator] = {}
        # a path without a variable goes before one with
        self._paths = [
            (re.compile(re.sub(r"\{\w+\}", "[^/]+", path)), calls)
            for path, calls in sorted(
                self._document["paths"].items(), key=lambda path: path[0].count("{")
            )
        ]

    def check(self, method: str, path: str, status: int, content_type: str, body: Any) -> None:
        """Fail where the answer is not as documented. `path` without its query."""
        calls = next(calls for pattern, calls in self._paths if pattern.fullmatch(path))
        responses = calls[method.lower()]["responses"]
        content = responses.get(str(status), responses["default"]).get("content", {})
        if content_type in content and content_type.endswith("json"):
            key = (calls[method.lower()]["operationId"], str(status), content_type)
            if key not in self._validators:
                schema = {
                    **content[content_type]["schema"],
                    "components": self._document["components"],
                }
                self._validators[key] = Draft202012Validator(schema, validate_formats=True)
            self._validators[key].validate(body)


@cache
def hook_validator() -> Draft202012Validator:
    """Return a validator of notifications, each against the documented body of its type."""
    document = exact(closed_words(build_document([], version="test", hooks=hooks())))
    of_type = [
        {
            "if": {"properties": {"type": {"const": hook.kind}}},
            "then": {"$ref": f"#/components/schemas/{hook.name}"},
        }
        for hook in hooks()
    ]
    known = {"type": {"enum": [hook.kind for hook in hooks()]}}
    return Draft202012Validator(
        {
            "required": ["type"],
            "properties": known,
            "allOf": of_type,
            "components": document["components"],
        }
    )


def check_openapi(document: Mapping[str, Any]) -> None:
    """Fail where a document is not OpenAPI 3.1."""
    # it builds 38 parsers as it loads, in seconds that each process of a test run would spend
    from openapi_spec_validator import OpenAPIV31SpecValidator  # noqa: PLC0415

    OpenAPIV31SpecValidator(document).validate()


def closed_words(schema: Any) -> Any:
    """Close a vocabulary that is open to callers to the words of today: its schema holds them
    all.
    """
    if isinstance(schema, list):
        return [closed_words(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    schema = {name: closed_words(each) for name, each in schema.items()}
    variants = schema.get("anyOf", [])
    if {"type": "string"} in variants and variants[0].keys() & {"$ref", "enum"}:
        variants.remove({"type": "string"})
        if len(variants) == 1:
            return {**schema.pop("anyOf")[0], **schema}
    return schema


def exact(schema: Any) -> Any:
    """Close a schema: its members are all that there are."""
    if isinstance(schema, list):
        return [exact(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {name: exact(each) for name, each in schema.items()}
    if closed.get("type") == "object" and "properties" in closed and closed.get("title"):
        closed.setdefault("additionalProperties", False)
    return closed
