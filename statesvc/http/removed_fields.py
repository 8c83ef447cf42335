"""Parameters, members of bodies and calls that a release removed.

Fields are accepted through 0.3 and have no effect; a warning in the header of the answer names each
that a caller sends.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from aiohttp import web
from pydantic import BaseModel, Field

from statesvc.http.operation import BODY, PARAMETERS

# The replacement of each removed field.
REMOVED: Final[Mapping[str, str]] = {
    "max_staleness": "the newest state is answered",
    "canary": "replay a few with `limit`, look, replay the rest",
    "stop_at_percent": "a replay does not stop by itself",
    "per_second": "messages are claimed fairly, however many are put back",
    "patience_seconds": "a replay waits for no outcome",
    "wait": "a replay waits for no outcome",
}
# The replacement of each removed call by path, for the answer 404.
REMOVED_CALLS: Final[Mapping[str, str]] = {
    "/asyncapi.json": (
        "`webhooks` in /openapi.json has the types, docs/brokers.md the attributes of each broker"
    ),
    "/v1/carriers/{carrier_id}/mappings/export": (
        "add a row to the carrier's table by hand (docs/teaching-codes.md)"
    ),
}
WARNING_HEADER: Final = "Statesvc-Warning"
# Headers that 0.1.0 promises to senders of the field.
_ANSWERED: Final[Mapping[str, Mapping[str, str]]] = {
    "max_staleness": {"Statesvc-Staleness": "0"},
}


def removed(name: str) -> Any:  # noqa: ANN401 - as pydantic's own
    return Field(deprecated=True, description=f"Has no effect since 0.2: {REMOVED[name]}.")


@cache
def removed_fields(model: type[BaseModel] | None) -> frozenset[str]:
    """Return the names of the removed fields that a model still accepts."""
    fields = {} if model is None else model.model_fields
    return frozenset(name for name, field in fields.items() if field.deprecated)


def described_headers(*models: type[BaseModel] | None) -> dict[str, str]:
    """Describe the headers below for a call that takes these models."""
    names = frozenset[str]().union(*map(removed_fields, models))
    described = {WARNING_HEADER: "Names the fields of the request that have no effect any more."}
    for name in names:
        described |= dict.fromkeys(_ANSWERED.get(name, ()), f"To `{name}`: always 0.")
    return described if names else {}


async def show_removed_fields(request: web.Request, response: web.StreamResponse) -> None:
    """Warn of the removed fields that the request has; for `on_response_prepare`."""
    given: tuple[BaseModel | None, ...] = (request.get(PARAMETERS), request.get(BODY))
    names = [
        name
        for model in given
        if model is not None
        for name in sorted(model.model_fields_set & removed_fields(type(model)))
    ]
    for name in names:
        response.headers.update(_ANSWERED.get(name, {}))
    if names:
        response.headers[WARNING_HEADER] = "; ".join(
            f"{name} has no effect: {REMOVED[name]}" for name in names
        )
