"""OpenAPI 3.1 of the routes, made from their operations and models: the document cannot disagree with what is checked, and sent."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core.core_schema import DataclassField, ModelField, TypedDictField

from statesvc.http.key_store import Scope
from statesvc.http.operation import Operation, Route
from statesvc.http.problem import CONTENT_TYPE, PROBLEM_KINDS, Code

_REFERENCE: Final = "#/components/schemas/{model}"
_PATH_NAME: Final = re.compile(r"\{(\w+)(?::[^}]*)?\}")
_PROBLEM: Final = {
    "type": "object",
    "description": "RFC 9457. `code` is stable; `errors` names each flaw of a request.",
    "required": ["type", "title", "status", "code", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "code": {"type": "string", "enum": [code.value for code in Code]},
        "detail": {"type": "string"},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["pointer", "detail"],
                "properties": {"pointer": {"type": "string"}, "detail": {"type": "string"}},
            },
        },
    },
}
Mode = Literal["validation", "serialization"]
Schemas = Mapping[tuple[Any, Mode], dict[str, Any]]


class _Generator(GenerateJsonSchema):
    def field_is_required(self, field: ModelField | DataclassField | TypedDictField, total: bool) -> bool:  # noqa: FBT001 - pydantic's
        """A dataclass is always sent whole, whatever defaults it has."""
        is_sent = self.mode == "serialization" and field["type"] == "dataclass-field"
        return is_sent or super().field_is_required(field, total)


def build_document(routes: Iterable[Route], *, version: str) -> dict[str, Any]:
    """The whole document as JSON values."""
    listed = list(routes)
    schemas, definitions = _schemas(listed)
    paths: dict[str, dict[str, Any]] = {}
    for route in listed:
        path = _PATH_NAME.sub(r"{\1}", route.path)
        paths.setdefault(path, {})[route.method.lower()] = _operation(route, path, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "statesvc", "version": version, "summary": "Where shipments are, how they got there, and proof of it"},
        "paths": paths,
        "components": {
            "schemas": {**definitions, "Problem": _PROBLEM},
            "securitySchemes": {
                "key": {"type": "http", "scheme": "bearer", "description": "An API key; `statesvc keys create` makes one."},
                **{other.name: other.scheme for route in listed if (other := route.operation.credential) is not None},
            },
        },
        "x-problems": [
            {"code": code.value, "status": int(meaning.status), "title": meaning.title} for code, meaning in PROBLEM_KINDS.items()
        ],
    }


def _schemas(routes: Iterable[Route]) -> tuple[Schemas, dict[str, Any]]:
    wanted: list[tuple[type[Any], Mode]] = []
    for route in routes:
        contract = route.operation
        wanted += [(model, "validation") for model in (contract.request, contract.parameters) if model is not None]
        wanted += [(model, "serialization") for model in (contract.response, contract.streamed) if model is not None]
    adapters: list[tuple[Any, Mode, TypeAdapter[Any]]] = [(model, mode, TypeAdapter(model)) for model, mode in dict.fromkeys(wanted)]
    if not adapters:
        return {}, {}
    found, document = TypeAdapter.json_schemas(adapters, ref_template=_REFERENCE, schema_generator=_Generator)
    return found, document.get("$defs", {})


def _operation(route: Route, path: str, schemas: Schemas) -> dict[str, Any]:
    contract = route.operation
    described: dict[str, Any] = {
        "operationId": _operation_id(route.method, path),
        "summary": contract.summary,
        "tags": [contract.tag or path.strip("/").removeprefix("v1/").split("/")[0]],
        "responses": _responses(contract, schemas),
    }
    if contract.description:
        described["description"] = contract.description
    if given := _parameters(contract, path):
        described["parameters"] = given
    if contract.request is not None:
        described["requestBody"] = {
            "required": not contract.is_body_optional,
            "content": {"application/json": {"schema": schemas[(contract.request, "validation")]}},
        }
    described["security"] = [] if contract.scope is None else [{"key": [Scope(contract.scope).value]}]
    if contract.credential is not None:
        described["security"].append({contract.credential.name: []})
    return described


def _operation_id(method: str, path: str) -> str:
    return "_".join([method.lower(), *re.findall(r"\w+", path.removeprefix("/v1"))])


def _parameters(contract: Operation[Any], path: str) -> list[dict[str, Any]]:
    schema = {} if contract.parameters is None else contract.parameters.model_json_schema(ref_template=_REFERENCE)
    properties: dict[str, Any] = schema.get("properties", {})
    in_path = _PATH_NAME.findall(path)
    given = [{"name": name, "in": "path", "required": True, "schema": properties.get(name, {"type": "string"})} for name in in_path]
    required = schema.get("required", ())
    given += [
        {"name": name, "in": "query", "required": name in required, "schema": property_schema}
        for name, property_schema in properties.items()
        if name not in in_path
    ]
    return given


def _responses(contract: Operation[Any], schemas: Schemas) -> dict[str, Any]:
    responses: dict[str, Any] = {}
    for status, description in contract.statuses.items():
        responses[str(status)] = {"description": description}
        model = contract.response or contract.streamed
        if model is not None and 200 <= status < 300:
            schema = schemas[(model, "serialization")]
            responses[str(status)]["content"] = {media_type: {"schema": schema} for media_type in contract.response_types}
    codes = [*contract.problems]
    if contract.scope is not None:
        codes += [Code.UNAUTHENTICATED, Code.MISSING_SCOPE]
    if contract.is_limited:
        codes.append(Code.TOO_MANY_REQUESTS)
    if contract.request is not None or contract.parameters is not None:
        codes.append(Code.INVALID_REQUEST)
    for code in codes:
        answered = str(int(PROBLEM_KINDS[code].status))
        said = responses.get(answered, {}).get("description")
        described = f"`{code.value}`: {PROBLEM_KINDS[code].title}"
        responses[answered] = _problem(described if said is None else f"{said}; {described}")
    responses["default"] = _problem("Any other problem")
    return responses


def _problem(description: str) -> dict[str, Any]:
    return {"description": description, "content": {CONTENT_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}}
