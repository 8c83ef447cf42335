"""Dead letters: grouped by what went wrong, one next to what the carrier sent, the body masked until someone says why it is read."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode
from uuid import UUID

import orjson

from events.errors import Cause
from statesvc.console.dead_letter_forms import GROUP, LIST, ONE, dead_letter_actions
from statesvc.console.screen import FormAction, PageRequest, PersonalDataRequest, Screen, Shown, Values
from statesvc.http.keys.key_store import Scope
from statesvc.http.problem import Code, Problem
from statesvc.repair.dead_letters.dead_letter import IN_WORDS, SENTENCES, Obstacle, Way

KINDS: Final = ("message", "code", "notification")
_CAUSES: Final = tuple(cause.value for cause in Cause)
_EVENTS_MAX: Final = 10


async def show_groups(visit: PageRequest) -> Mapping[str, Any]:
    """What waits, the largest group first."""
    wanted = {name: visit.query(name) for name in ("kind", "carrier_id", "cause")}
    found = await visit.call_api("GET /v1/dead-letters/groups", **_stated(wanted))
    return {
        "wanted": wanted,
        "kinds": KINDS,
        "causes": _CAUSES,
        "groups": [(group, _group_path(group)) for group in found["items"]],
        "most": max((group["dead_letters"] for group in found["items"]), default=0),
        "capped": found["counts_capped"],
    }


async def show_group(visit: PageRequest) -> Mapping[str, Any]:
    """One group: its newest as a sample, and a page of all."""
    wanted = {name: visit.query(name) for name in ("kind", "carrier_id", "cause")}
    settled = visit.query("settled") == "1"
    groups = (await visit.call_api("GET /v1/dead-letters/groups", **_stated(wanted)))["items"]
    page = await visit.call_api("GET /v1/dead-letters", **_stated(wanted), open=not settled, cursor=visit.query("cursor") or None, limit=50)
    sample = None
    if len(groups) == 1 and not settled and not visit.query("cursor"):
        sample = await _sample(visit, groups[0]["dead_letter_ids"][0])
    return {
        "wanted": wanted,
        "query": urlencode(_stated(wanted)),
        "page_filter": {**wanted, "settled": "1" if settled else ""},
        "group": groups[0] if len(groups) == 1 else None,
        "in_words": IN_WORDS,
        "settled": settled,
        "dead_letters": page["items"],
        "next_cursor": page["next_cursor"],
        "sample": sample,
    }


async def show_one(visit: PageRequest) -> Mapping[str, Any]:
    """One, with everything that is known about it."""
    sample = await _sample(visit, visit.path("dead_letter_id"))
    return {"title": _title(sample), "sample": sample}


async def _read_body(visit: PageRequest, _values: Values) -> Shown:
    """The body, with the reading on record."""
    sample = await _sample(visit, visit.path("dead_letter_id"))
    message_id = sample["one"]["message_id"]
    body = None
    if message_id is not None:
        message = await visit.call_api("GET /v1/messages/{message_id}", message_id=UUID(message_id), include="personal")
        body = {"text": message["body_text"], "base64": message["body_base64"], "indented": _indented(message["body_text"])}
    return Shown("dead_letter.html", {"title": _title(sample), "sample": {**sample, "body": body}})


async def _sample(visit: PageRequest, dead_letter_id: int | str) -> dict[str, Any]:
    """One dead letter and, where it is about a message that the key may see, that message."""
    one = await visit.call_api("GET /v1/dead-letters/{id}", id=dead_letter_id)
    message = await _message(visit, one["message_id"])
    events = None
    if one["kind"] == "code":
        code = {name: one[name] for name in ("raw_type", "raw_code") if one[name] is not None}
        events = (await visit.call_api("GET /v1/unmapped-codes/samples", carrier_id=one["carrier_id"], **code, limit=_EVENTS_MAX))["items"]
    return {
        "one": one,
        "way": IN_WORDS[Way(one["way"])],
        "obstacle": None if one["obstacle"] is None else SENTENCES[Obstacle(one["obstacle"])],
        "message": message,
        "events": events,
        "body": None,
        "group_path": _group_path(one),
        "code_query": urlencode({name: one[name] for name in ("raw_type", "raw_code") if one[name] is not None}),
    }


async def _message(visit: PageRequest, message_id: str | None) -> Mapping[str, Any] | None:
    """Its outcome; None where there is none, it is stored no longer, or the key may not see it."""
    if message_id is None or not visit.has(Scope.AUDIT):
        return None
    try:
        found: Mapping[str, Any] = await visit.call_api("GET /v1/messages/{message_id}", message_id=UUID(message_id))
    except Problem as problem:
        if problem.code is not Code.NOT_FOUND:
            raise
        return None
    return found


def _title(sample: Mapping[str, Any]) -> str:
    return f"Dead letter {sample['one']['dead_letter_id']}"


def _indented(text: str | None) -> str | None:
    """JSON as people read it; None where it is none, or is written so already."""
    try:
        indented = orjson.dumps(orjson.loads(text or ""), option=orjson.OPT_INDENT_2).decode()
    except orjson.JSONDecodeError:
        return None
    return None if indented == text else indented


def _stated(wanted: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in wanted.items() if value}


def _group_path(group: Mapping[str, Any]) -> str:
    """A cause that a foreign worker named is no filter of the API: the path leaves it out."""
    cause = {"cause": group["cause"]} if group["cause"] in _CAUSES else {}
    return f"{GROUP}?{urlencode({'kind': group['kind'], 'carrier_id': group['carrier_id'], **cause})}"


def dead_letter_pages() -> tuple[list[Screen], list[FormAction], list[PersonalDataRequest]]:
    """The rows of the tables."""
    about: dict[str, Any] = {"scope": Scope.OPS, "section": LIST}
    return (
        [
            Screen(path=LIST, title="Dead letters", template="dead_letters.html", show=show_groups, menu="Dead letters", **about),
            Screen(path=GROUP, title="Dead letters", template="dead_letter_group.html", show=show_group, **about),
            Screen(path=ONE, title="Dead letter", template="dead_letter.html", show=show_one, **about),
        ],
        dead_letter_actions(),
        [PersonalDataRequest(path=ONE + "/body", title="Dead letter", scope=Scope.PII, disclose=_read_body, section=LIST)],
    )
