"""Checks a request against the models of its operation. Flaws name places and rules, never the rejected values."""

from typing import Any, Final

from aiohttp import hdrs, web
from pydantic import BaseModel, ValidationError

from statesvc.http.problem import Code, Flaw, Problem

_JSON_TYPES: Final = frozenset({"application/json", "application/octet-stream"})
"""The second is what aiohttp reports for a request without a Content-Type."""


class Parameters:
    """What a call takes in its path and query. Without a model it takes nothing in the query."""

    def __init__(self, model: type[BaseModel] | None) -> None:
        self._model = model
        properties = {} if model is None else model.model_json_schema()["properties"]
        self._names = frozenset(properties)
        self._repeatable = frozenset(
            name
            for name, schema in properties.items()
            if any(variant.get("type") == "array" for variant in (schema, *schema.get("anyOf", ())))
        )

    def checked(self, request: web.Request) -> BaseModel | None:
        """The parameters as the model has them; the problem `invalid_request` where they break it."""
        path = request.match_info
        given: dict[str, Any] = {name: value for name, value in path.items() if name in self._names}
        flaws = []
        for name in dict.fromkeys(request.query):
            values = request.query.getall(name)
            if name not in self._names or name in path:
                takes = ", ".join(sorted(self._names - set(path))) or "none"
                flaws.append(Flaw(f"/query/{name}", f"this call has no such parameter; it takes: {takes}"))
            elif name in self._repeatable:
                given[name] = values
            elif len(values) > 1:
                flaws.append(Flaw(f"/query/{name}", "stands more than once"))
            else:
                given[name] = values[0]
        if flaws:
            raise Problem(Code.INVALID_REQUEST, "the parameters break the contract", flaws=flaws)
        if self._model is None:
            return None
        try:
            return self._model.model_validate(given)
        except ValidationError as error:
            raise _invalid(error, "query") from None


async def checked_body(request: web.Request, model: type[BaseModel]) -> BaseModel:
    """The body as the model has it; the problem `invalid_request` where it breaks it."""
    if request.content_type not in _JSON_TYPES:
        raise Problem(Code.UNSUPPORTED_MEDIA_TYPE, "send application/json", headers={hdrs.ACCEPT: "application/json"})
    try:
        return model.model_validate_json(await request.read())
    except ValidationError as error:
        raise _invalid(error, "body") from None


def _invalid(error: ValidationError, part: str) -> Problem:
    details = error.errors(include_url=False, include_input=False, include_context=False)
    flaws = [Flaw("/".join(["", part, *map(str, detail["loc"])]), detail["msg"]) for detail in details]
    what = "the parameters break" if part == "query" else "the body breaks"
    return Problem(Code.INVALID_REQUEST, f"{what} the contract", flaws=flaws)
