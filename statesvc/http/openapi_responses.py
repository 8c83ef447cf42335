"""Responses of the calls in the OpenAPI document."""

from typing import Any, Final

from aiohttp import hdrs

from statesvc.http.json_schemas import REFERENCE, Schemas
from statesvc.http.keys.key_limits import RATE_LIMIT, RATE_LIMIT_POLICY
from statesvc.http.operation import Operation
from statesvc.http.problem import PROBLEM_KINDS, Code
from statesvc.http.removed_fields import described_headers

_WAITED_FOR: Final = frozenset({"429", "503"})


def _streamed(data: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a stream's event, with this as JSON in its `data`."""
    members = {"event": {"type": "string"}, "id": {"type": "string"}}
    embedded = {"type": "string", "contentMediaType": "application/json", "contentSchema": data}
    return {
        "type": "object",
        "description": "One of the events.",
        "required": ["data"],
        "properties": {**members, "data": embedded},
    }


def _answers(contract: Operation[Any], schemas: Schemas) -> dict[str, Any]:
    responses: dict[str, Any] = {}
    warned = described_headers(contract.parameters, contract.request)
    for status, description in contract.statuses.items():
        responses[str(status)] = {"description": description}
        model = contract.response or contract.streamed
        if model is not None and 200 <= status < 300:
            schema = schemas[(model, "serialization")]
            is_stream = contract.streamed is not None
            document = {"schema": _streamed(schema) if is_stream else schema}
            responses[str(status)]["content"] = {
                media_type: document
                if is_stream or media_type == "application/json"
                else {"schema": {"type": "string"}}
                for media_type in contract.response_types
            }
        if headers := {**contract.response_headers, **warned}:
            responses[str(status)]["headers"] = {
                str(name): {"description": description, "schema": {"type": "string"}}
                for name, description in headers.items()
            }
    return responses


def responses(contract: Operation[Any], schemas: Schemas) -> dict[str, Any]:
    responses = _answers(contract, schemas)
    codes = [*contract.problems]
    if contract.scope is not None:
        codes += [Code.UNAUTHENTICATED, Code.MISSING_SCOPE]
    if contract.is_limited:
        codes.append(Code.TOO_MANY_REQUESTS)
    if contract.request is not None or contract.parameters is not None or contract.rules:
        codes.append(Code.INVALID_REQUEST)
    for code in codes:
        answered = str(int(PROBLEM_KINDS[code].status))
        said = responses.get(answered, {}).get("description")
        described = f"`{code.value}`: {PROBLEM_KINDS[code].title}"
        if code is Code.INVALID_REQUEST and contract.rules:
            described = " ".join([f"{described}. Besides what the schemas say:", *contract.rules])
        responses[answered] = _problem(
            contract, described if said is None else f"{said}; {described}"
        )
    responses["default"] = _problem(contract, "Any other problem")
    for answered, response in responses.items():
        shown = [str(hdrs.RETRY_AFTER)] if answered in _WAITED_FOR else []
        shown += [RATE_LIMIT, RATE_LIMIT_POLICY] if contract.is_limited else []
        if shown:
            response.setdefault("headers", {}).update(
                {name: {"$ref": f"#/components/headers/{name}"} for name in shown}
            )
    return responses


def _problem(contract: Operation[Any], description: str) -> dict[str, Any]:
    content = {"schema": {"$ref": REFERENCE.format(model="Problem")}}
    return {"description": description, "content": dict.fromkeys(contract.problem_types, content)}
