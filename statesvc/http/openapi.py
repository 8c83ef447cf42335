"""OpenAPI 3.1 of the routes, made from the operations and models that also check requests."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from aiohttp import hdrs

from statesvc.http.introduction import INTRODUCTION, TAGS
from statesvc.http.json_schemas import REFERENCE, Mode, Schemas, schema_of, schemas_of
from statesvc.http.keys.key_limits import RATE_LIMIT, RATE_LIMIT_POLICY
from statesvc.http.keys.key_store import Scope
from statesvc.http.openapi_responses import responses
from statesvc.http.operation import Operation, RequestHeader, Route
from statesvc.http.problem import PROBLEM_KINDS, Code

_PATH_NAME: Final = re.compile(r"\{(\w+)(?::[^}]*)?\}")
_HEADERS: Final = {
    RATE_LIMIT: (
        "What the key may still ask of this process: `r` calls now, the whole quota again in `t`"
        " seconds."
    ),
    RATE_LIMIT_POLICY: "The key's quota: `q` calls in `w` seconds.",
    str(hdrs.RETRY_AFTER): "Wait this many seconds before the next try.",
}
_SECURITY_SCHEMES: Final = {
    "key": {
        "type": "http",
        "scheme": "bearer",
        "description": (
            "An API key; `statesvc keys create` makes one. Lists of scopes: what it must have."
        ),
    },
    "carrier": {
        "type": "apiKey",
        "in": "header",
        "name": "Authorization",
        "description": (
            "The carrier's own scheme on the raw bytes: a signature in a header of its own, a"
            " token, basic authentication."
        ),
    },
}
_PROBLEM_CODE: Final = {
    "type": "string",
    "description": (
        "What went wrong, for programs; docs/errors.md lists all. Later versions add some."
    ),
    "enum": [code.value for code in Code],
}
_PROBLEM: Final = {
    "type": "object",
    "description": "RFC 9457. `code` is stable; `errors` names each flaw of a request.",
    "required": ["type", "title", "status", "code", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "code": {"anyOf": [{"$ref": "#/components/schemas/ProblemCode"}, {"type": "string"}]},
        "detail": {"type": "string"},
        "errors": {"type": "array", "items": {"$ref": "#/components/schemas/ProblemViolation"}},
    },
}
_VIOLATION: Final = {
    "type": "object",
    "description": "One thing wrong with a request.",
    "required": ["pointer", "detail"],
    "properties": {
        "pointer": {"type": "string", "description": "Where: `/body/url`, `/query/limit`."},
        "detail": {"type": "string"},
    },
}
# By operation: `request` by media type, `responses` by status and media type.
Examples = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """A request of the service to others: `kind`, a time and `data` of Standard Webhooks.

    `examples`: bodies, by name.
    """

    kind: str
    name: str
    summary: str
    description: str
    data: type[Any]
    examples: Mapping[str, Mapping[str, Any]]
    headers: Mapping[str, str]

    def schema(self, schemas: Schemas) -> dict[str, Any]:
        return {
            "type": "object",
            "description": self.summary,
            "required": ["type", "timestamp", "data"],
            "properties": {
                "type": {"type": "string", "const": self.kind},
                "timestamp": {
                    "type": "string",
                    "format": "date-time",
                    "description": "When what it reports was recorded.",
                },
                "data": schemas[(self.data, "serialization")],
            },
        }


def build_document(
    routes: Iterable[Route],
    *,
    version: str,
    hooks: Sequence[Hook] = (),
    examples: Examples = MappingProxyType({}),
) -> dict[str, Any]:
    listed = list(routes)
    schemas, definitions = _schemas(listed, hooks)
    _require_distinct(route.operation.operation_id for route in listed)
    paths: dict[str, dict[str, Any]] = {}
    for route in listed:
        path = _PATH_NAME.sub(r"{\1}", route.path)
        paths.setdefault(path, {})[route.method.lower()] = call = _operation(route, path, schemas)
        _show(call, examples.get(route.operation.operation_id, {}))
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "statesvc",
            "version": version,
            "summary": "Where shipments are, how they got there, and proof of it",
            "description": INTRODUCTION,
            "contact": {"name": "The operators of this installation"},
            "license": {"name": "Apache License 2.0", "identifier": "Apache-2.0"},
        },
        "tags": [{"name": tag, "description": description} for tag, description in TAGS.items()],
        "servers": [{"url": "/", "description": "The service that serves this document"}],
        "paths": paths,
        "webhooks": {hook.kind: {"post": _hook(hook)} for hook in hooks},
        "components": {
            "schemas": {
                **definitions,
                **{hook.name: hook.schema(schemas) for hook in hooks},
                "Problem": _PROBLEM,
                "ProblemCode": _PROBLEM_CODE,
                "ProblemViolation": _VIOLATION,
            },
            "headers": {
                name: {"description": description, "schema": {"type": "string"}}
                for name, description in _HEADERS.items()
            },
            "securitySchemes": (
                _SECURITY_SCHEMES
                | {
                    other.name: other.scheme
                    for route in listed
                    if (other := route.operation.credential) is not None
                }
            ),
        },
        "x-problems": [
            {
                "code": code.value,
                "status": int(meaning.status),
                "title": meaning.title,
                "remedy": meaning.remedy,
            }
            for code, meaning in PROBLEM_KINDS.items()
        ],
    }


def _schemas(routes: Sequence[Route], hooks: Sequence[Hook]) -> tuple[Schemas, dict[str, Any]]:
    wanted: list[tuple[type[Any], Mode]] = [(hook.data, "serialization") for hook in hooks]
    for route in routes:
        contract = route.operation
        wanted += [
            (model, "validation")
            for model in (contract.request, *contract.accepts.values())
            if model is not None
        ]
        wanted += [
            (model, "serialization")
            for model in (contract.response, contract.streamed)
            if model is not None
        ]
    found, definitions = schemas_of(wanted)
    for route in routes:
        if route.operation.parameters is not None:
            definitions = schema_of(route.operation.parameters).get("$defs", {}) | definitions
    for name, schema in definitions.items():
        if "title" in schema:
            schema["title"] = name
    return found, definitions


def _hook(hook: Hook) -> dict[str, Any]:
    content = {
        "schema": {"$ref": REFERENCE.format(model=hook.name)},
        "examples": {name: {"value": example} for name, example in hook.examples.items()},
    }
    return {
        "operationId": f"receive_{hook.kind.replace('.', '_')}",
        "summary": hook.summary,
        "description": hook.description,
        "tags": ["notifications"],
        "parameters": [
            {
                "name": name,
                "in": "header",
                "required": True,
                "description": description,
                "schema": {"type": "string"},
            }
            for name, description in hook.headers.items()
        ],
        "requestBody": {"required": True, "content": {"application/json": content}},
        "responses": {
            "2XX": {
                "description": (
                    "Taken. Anything else, or none within 15 s: it comes again later, under the"
                    " same `webhook-id`."
                )
            },
            "410": {"description": "You want no more: the subscription is disabled."},
        },
        "security": [],
    }


def _require_distinct(operation_ids: Iterable[str]) -> None:
    repeated = [name for name, count in Counter(operation_ids).items() if count > 1]
    if repeated:
        raise ValueError(f"operations share a name: {', '.join(repeated)}")


def _operation(route: Route, path: str, schemas: Schemas) -> dict[str, Any]:
    contract = route.operation
    described: dict[str, Any] = {
        "operationId": contract.operation_id,
        "summary": contract.summary,
        "tags": [contract.tag or path.strip("/").removeprefix("v1/").split("/")[0]],
        "responses": responses(contract, schemas),
        "security": _security(contract),
    }
    described["description"] = contract.description or f"{contract.summary}."
    if contract.rules:
        described["x-rules"] = [*contract.rules]
    if given := _parameters(contract, path):
        described["parameters"] = given
    accepted = (
        {"application/json": contract.request} if contract.request is not None else contract.accepts
    )
    if accepted:
        content = {
            media_type: {"schema": schemas[(model, "validation")]}
            for media_type, model in accepted.items()
        }
        described["requestBody"] = {"required": not contract.is_body_optional, "content": content}
    return described


def _show(call: dict[str, Any], examples: Mapping[str, Any]) -> None:
    bodies = [
        (call["responses"][status], found)
        for status, found in examples.get("responses", {}).items()
    ]
    for described, found in [(call.get("requestBody", {}), examples.get("request", {})), *bodies]:
        for media_type, example in found.items():
            described["content"][media_type]["example"] = example


def _security(contract: Operation[Any]) -> list[dict[str, list[str]]]:
    """Return the schemes, each of which suffices; none: the call takes no key."""
    if contract.carrier_authenticated:
        return [{"carrier": []}, {"key": [Scope.INGEST.value]}]
    keys = [] if contract.scope is None else [{"key": [Scope(contract.scope).value]}]
    return keys if contract.credential is None else [*keys, {contract.credential.name: []}]


def _parameters(contract: Operation[Any], path: str) -> list[dict[str, Any]]:
    schema = {} if contract.parameters is None else schema_of(contract.parameters)
    properties: dict[str, Any] = schema.get("properties", {})
    in_path = _PATH_NAME.findall(path)
    given = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": properties.get(name, {"type": "string"}),
        }
        for name in in_path
    ]
    required = schema.get("required", ())
    given += [
        {"name": name, "in": "query", "required": name in required, "schema": property_schema}
        for name, property_schema in properties.items()
        if name not in in_path
    ]
    given += [
        {
            "name": str(name),
            "in": "header",
            "required": False,
            "description": header.description,
            "schema": _header_schema(header),
        }
        for name, header in contract.request_headers.items()
    ]
    return given


def _header_schema(header: RequestHeader) -> dict[str, Any]:
    bounds = {"pattern": header.pattern, "maxLength": header.chars_max}
    return {
        "type": "string",
        **{name: bound for name, bound in bounds.items() if bound is not None},
    }
