"""A dead letter beside its message.

The values are masked until an operator gives a reason to read them.
"""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode
from uuid import UUID

import orjson

from statesvc.addons.console.screen import PageRequest, PersonalDataRequest, Screen, Shown, Values
from statesvc.api.dead_letter_operations import LIST, get_dead_letter
from statesvc.http.keys.key_store import Scope
from statesvc.http.problem import Code, Problem
from statesvc.http.views import draw

ONE: Final = LIST + "/{dead_letter_id}"
_EVENTS_MAX: Final = 10


async def show_one(visit: PageRequest) -> Mapping[str, Any]:
    """Show a dead letter with all its facts."""
    one = await visit.call_api("GET /v1/dead-letters/{id}", id=visit.path("dead_letter_id"))
    code = {name: one[name] for name in ("raw_type", "raw_code") if one[name] is not None}
    events = None
    if one["kind"] == "code":
        found = await visit.call_api(
            "GET /v1/unmapped-codes/samples",
            carrier_id=one["carrier_id"],
            **code,
            limit=_EVENTS_MAX,
        )
        events = found["items"]
    return {
        "title": f"Dead letter {one['dead_letter_id']}",
        "one": one,
        "blocks": draw(get_dead_letter.view, one),
        "message": await _message(visit, one["message_id"]),
        "events": events,
        "body": None,
        "code_query": urlencode(code),
    }


async def _read_body(visit: PageRequest, _values: Values) -> Shown:
    """Show the body, with the reading on record."""
    values = await show_one(visit)
    message_id = values["one"]["message_id"]
    body = None
    if message_id is not None:
        message = await visit.call_api(
            "GET /v1/messages/{message_id}", message_id=UUID(message_id), include="personal"
        )
        body = {
            "text": message["body_text"],
            "base64": message["body_base64"],
            "indented": _indented(message["body_text"]),
        }
    return Shown("dead_letter.html", {**values, "body": body})


async def _message(visit: PageRequest, message_id: str | None) -> Mapping[str, Any] | None:
    """Return the message's outcome.

    None: there is none, the message is no longer stored, or the key may not see it.
    """
    if message_id is None or not visit.has(Scope.AUDIT):
        return None
    try:
        found: Mapping[str, Any] = await visit.call_api(
            "GET /v1/messages/{message_id}", message_id=UUID(message_id), structure=True
        )
    except Problem as problem:
        if problem.code is not Code.NOT_FOUND:
            raise
        return None
    return found


def _indented(text: str | None) -> str | None:
    """Indent JSON as people read it; None where it is none, or is written so already."""
    try:
        indented = orjson.dumps(orjson.loads(text or ""), option=orjson.OPT_INDENT_2).decode()
    except orjson.JSONDecodeError:
        return None
    return None if indented == text else indented


def dead_letter_pages() -> tuple[list[Screen], list[PersonalDataRequest]]:
    """Return the rows of the tables."""
    about: dict[str, Any] = {"title": "Dead letter", "section": LIST}
    return (
        [Screen(path=ONE, template="dead_letter.html", scope=Scope.OPS, show=show_one, **about)],
        [PersonalDataRequest(path=ONE + "/body", scope=Scope.PII, disclose=_read_body, **about)],
    )
