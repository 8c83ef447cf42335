"""Dead letters: grouped by what went wrong, one next to what the carrier sent, the body masked until someone says why it is read."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode
from uuid import UUID

import orjson
from markupsafe import Markup

from events.errors import Cause
from statesvc.addons.console.charts import line
from statesvc.addons.console.dead_letter_forms import GROUP, LIST, ONE, dead_letter_actions
from statesvc.addons.console.screen import (
    FormAction,
    PageRequest,
    PersonalDataRequest,
    Screen,
    Shown,
    Values,
)
from statesvc.api.dead_letter_words import cause_words
from statesvc.database.pool import Connections
from statesvc.database.queries import queries
from statesvc.http.keys.key_store import Scope
from statesvc.http.problem import Code, Problem
from statesvc.repair.dead_letters.dead_letter import IN_WORDS, SENTENCES, Obstacle, Way

KINDS: Final = ("message", "code", "notification")
_CAUSES: Final = tuple(cause.value for cause in Cause)
_EVENTS_MAX: Final = 10
_HOURS: Final = 24
_COUNT_MAX: Final = 10_000
_HOURLY: Final = "Dead letters of the last 24 hours, hour by hour"
_SQL: Final = queries("statesvc.addons.console", "dead_letter_screens")


@dataclass(frozen=True, slots=True)
class DeadLetterList:
    """List of dead letters that wait, the largest group first, with what came in each hour of the last day."""

    pool: Connections

    async def show(self, visit: PageRequest) -> Mapping[str, Any]:
        """Show the groups."""
        values = await show_groups(visit)
        async with self.pool.connection() as connection:
            rows = await (
                await connection.execute(_SQL["hours"], {"count_max": _COUNT_MAX})
            ).fetchall()
        hours: dict[tuple[str, str, str], list[float | None]] = defaultdict(lambda: [0.0] * _HOURS)
        for kind, carrier_id, cause, hour, count in rows:
            hours[kind, carrier_id, cause][_HOURS - 1 - min(max(hour, 0), _HOURS - 1)] = count
        rows_shown = [
            DeadLetterRow(
                group=group,
                path=path,
                chart=line(
                    hours[group["kind"], group["carrier_id"], group["cause"]],
                    title=_HOURLY,
                    style="warn",
                    width=200,
                ),
                carrier_path=f"/console/carriers/{group['carrier_id']}",
            )
            for group, path in values["groups"]
        ]
        return {
            **values,
            "rows": rows_shown,
            "total": sum(group["dead_letters"] for group, _ in values["groups"]),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterRow:
    """A group as the list shows it."""

    group: Mapping[str, Any]
    path: str
    chart: Markup
    carrier_path: str

    @property
    def what(self) -> str:
        """Say what went wrong, for people."""
        detail = self.group["details"][0]["detail"] if len(self.group["details"]) == 1 else ""
        return _heading(cause_words(self.group["cause"], detail or ""))

    @property
    def details(self) -> str:
        """Say in what the bodies of the group differ."""
        details = self.group["details"]
        if self.group["kind"] == "code" and len(details) == 1:
            return ""
        shown = ", ".join(
            f"{each['detail']}: {each['dead_letters']:,}"
            if each["dead_letters"] > 1
            else each["detail"]
            for each in details[:2]
            if each["detail"]
        )
        return shown + (f" and {len(details) - 2} more" if len(details) > 2 else "")


def _heading(words: str) -> str:
    return words[:1].upper() + words[1:]


async def show_groups(visit: PageRequest) -> Mapping[str, Any]:
    """Show what waits, the largest group first."""
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
    """Show one group: its newest as a sample, and a page of all."""
    wanted = {name: visit.query(name) for name in ("kind", "carrier_id", "cause")}
    settled = visit.query("settled") == "1"
    groups = (await visit.call_api("GET /v1/dead-letters/groups", **_stated(wanted)))["items"]
    page = await visit.call_api(
        "GET /v1/dead-letters",
        **_stated(wanted),
        open=not settled,
        cursor=visit.query("cursor") or None,
        limit=50,
    )
    sample = None
    if len(groups) == 1 and not settled and not visit.query("cursor"):
        sample = await _sample(visit, groups[0]["dead_letter_ids"][0])
    return {
        "wanted": wanted,
        "query": urlencode(_stated(wanted)),
        "page_filter": {**wanted, "settled": "1" if settled else ""},
        "group": groups[0] if len(groups) == 1 else None,
        "what": _heading(cause_words(groups[0]["cause"])) if len(groups) == 1 else "",
        "in_words": IN_WORDS,
        "settled": settled,
        "dead_letters": page["items"],
        "next_cursor": page["next_cursor"],
        "sample": sample,
    }


async def show_one(visit: PageRequest) -> Mapping[str, Any]:
    """Show one, with everything that is known about it."""
    sample = await _sample(visit, visit.path("dead_letter_id"))
    return {"title": _title(sample), "sample": sample}


async def _read_body(visit: PageRequest, _values: Values) -> Shown:
    """Show the body, with the reading on record."""
    sample = await _sample(visit, visit.path("dead_letter_id"))
    message_id = sample["one"]["message_id"]
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
    return Shown("dead_letter.html", {"title": _title(sample), "sample": {**sample, "body": body}})


async def _sample(visit: PageRequest, dead_letter_id: int | str) -> dict[str, Any]:
    """Return one dead letter and, where it is about a message that the key may see, that message."""
    one = await visit.call_api("GET /v1/dead-letters/{id}", id=dead_letter_id)
    message = await _message(visit, one["message_id"])
    events = None
    if one["kind"] == "code":
        code = {name: one[name] for name in ("raw_type", "raw_code") if one[name] is not None}
        events = (
            await visit.call_api(
                "GET /v1/unmapped-codes/samples",
                carrier_id=one["carrier_id"],
                **code,
                limit=_EVENTS_MAX,
            )
        )["items"]
    return {
        "one": one,
        "way": IN_WORDS[Way(one["way"])],
        "obstacle": None if one["obstacle"] is None else SENTENCES[Obstacle(one["obstacle"])],
        "message": message,
        "events": events,
        "body": None,
        "group_path": _group_path(one),
        "code_query": urlencode(
            {name: one[name] for name in ("raw_type", "raw_code") if one[name] is not None}
        ),
    }


async def _message(visit: PageRequest, message_id: str | None) -> Mapping[str, Any] | None:
    """Return the message's outcome; None where there is none, it is stored no longer, or the key may not see it."""
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


def _title(sample: Mapping[str, Any]) -> str:
    return f"Dead letter {sample['one']['dead_letter_id']}"


def _indented(text: str | None) -> str | None:
    """Indent JSON as people read it; None where it is none, or is written so already."""
    try:
        indented = orjson.dumps(orjson.loads(text or ""), option=orjson.OPT_INDENT_2).decode()
    except orjson.JSONDecodeError:
        return None
    return None if indented == text else indented


def _stated(wanted: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in wanted.items() if value}


def _group_path(group: Mapping[str, Any]) -> str:
    """Return the path of a group; it leaves out a cause that a foreign worker named, which is no filter of the API."""
    cause = {"cause": group["cause"]} if group["cause"] in _CAUSES else {}
    return (
        f"{GROUP}?{urlencode({'kind': group['kind'], 'carrier_id': group['carrier_id'], **cause})}"
    )


def dead_letter_pages(
    pool: Connections,
) -> tuple[list[Screen], list[FormAction], list[PersonalDataRequest]]:
    """Return the rows of the tables."""
    about: dict[str, Any] = {"scope": Scope.OPS, "section": LIST}
    return (
        [
            Screen(
                path=LIST,
                title="Dead letters",
                template="dead_letters.html",
                show=DeadLetterList(pool).show,
                menu="Dead letters",
                **about,
            ),
            Screen(
                path=GROUP,
                title="Dead letters",
                template="dead_letter_group.html",
                show=show_group,
                **about,
            ),
            Screen(
                path=ONE, title="Dead letter", template="dead_letter.html", show=show_one, **about
            ),
        ],
        dead_letter_actions(),
        [
            PersonalDataRequest(
                path=ONE + "/body",
                title="Dead letter",
                scope=Scope.PII,
                disclose=_read_body,
                section=LIST,
            )
        ],
    )
