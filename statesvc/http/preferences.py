"""Unknown words of a request: a warning, or a refusal under `Prefer: handling=strict` (RFC 7240).

Release 0.1.0 ignored them; in 0.3 strict is the default (docs/promises.md).
"""

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Annotated, Any, Final

from aiohttp import web
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from events.spelling import nearest
from statesvc.http.problem import Code, Problem, Violation

PREFER: Final = "Prefer"
_HANDLING: Final = re.compile(r'(?:^|[,;])\s*handling\s*=\s*"?strict"?\s*(?:[,;]|$)', re.IGNORECASE)


class RequestWarning(TypedDict):
    """A part of the request that was ignored, or can match no item."""

    pointer: Annotated[str, Field(description="Which part of the request, as in `errors`.")]
    proposal: Annotated[
        str | None, Field(description="The word that was probably meant; null: none is near.")
    ]


STRICT: Final = web.RequestKey("strict", bool)
WARNINGS: Final = web.RequestKey("warnings", list[RequestWarning])


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Words that a parameter may hold; `Annotated[str | None, Vocabulary(...)]`."""

    words: Callable[[], Collection[str]]


def is_strict(request: web.Request) -> bool:
    """Return whether the caller wants a refusal in place of warnings."""
    return any(map(_HANDLING.search, request.headers.getall(PREFER, ())))


def unknown_words(parameters: BaseModel) -> list[RequestWarning]:
    """Return the parameters that hold no word of their vocabulary."""
    found: list[RequestWarning] = []
    for name, field in type(parameters).model_fields.items():
        for vocabulary in (each for each in field.metadata if isinstance(each, Vocabulary)):
            words, given = vocabulary.words(), getattr(parameters, name)
            if given is not None and given not in words:
                found.append({"pointer": f"/query/{name}", "proposal": nearest(given, words)})
    return found


def unknown_word(warnings: Sequence[RequestWarning]) -> Problem:
    return Problem(
        Code.INVALID_REQUEST,
        "the parameters break the contract",
        violations=[
            Violation(each["pointer"], f"is no known word{proposed(each['proposal'])}")
            for each in warnings
        ],
    )


def proposed(proposal: str | None) -> str:
    """Return the end of a sentence about an unknown word."""
    return "" if proposal is None else f"; did you mean `{proposal}`?"


def with_warnings(value: object, warnings: Sequence[RequestWarning] | None) -> object:
    """Return an answer with the warnings; a file has no place for them."""
    if not warnings:
        return value
    if is_dataclass(value):
        members: Any = {each.name: getattr(value, each.name) for each in fields(value)}
        return {**members, "warnings": warnings}
    return {**value, "warnings": warnings} if isinstance(value, dict) else value


async def show_preference(request: web.Request, response: web.StreamResponse) -> None:
    """Report strict handling in the answer; for `on_response_prepare`."""
    if request.get(STRICT):
        response.headers["Preference-Applied"] = "handling=strict"
