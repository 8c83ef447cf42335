"""Shipments: search, list, and the whole record of a shipment, today or as of a day."""

from bisect import bisect_right
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote, urlencode
from uuid import UUID

from events.carriers import CARRIERS
from events.vocabulary import Reason, Status
from statesvc.addons.console.screen import (
    MenuGroup,
    PageRequest,
    PersonalDataRequest,
    Redirect,
    Screen,
    Shown,
    Values,
)
from statesvc.addons.console.shipment_lines import (
    causes_of,
    conflict_sentences,
    flag_sentences,
    seals_of,
    timeline_lines,
    town_of,
)
from statesvc.addons.console.shipment_story import (
    answer_of,
    came_late,
    contradicting,
    notified_changes,
    status_style,
    told_times,
)
from statesvc.http.inner_calls import Json
from statesvc.http.keys.key_store import Scope
from statesvc.http.paging import LIMIT_MAX
from statesvc.http.problem import Code, Problem
from statesvc.shipments.plain_names import REMARKS, carrier_name

LIST: Final = "/console/shipments"
ONE: Final = LIST + "/{carrier_id}/{tracking_number}"
PERSONAL: Final = ONE + "/personal"
CALL: Final = "/v1/shipments/{carrier_id}/{tracking_number}"
_QUICK: Final[Sequence[tuple[str, Mapping[str, str]]]] = (
    ("All", {}),
    ("In trouble", {"in_trouble": "true"}),
    ("Silent 3 d+", {"stalled_for": "P3D"}),
    ("Contradicted", {"flag": "contradicted"}),
    ("Overdue", {"flag": "overdue"}),
    ("Out for delivery", {"status": "out_for_delivery"}),
    ("Delivered", {"status": "delivered"}),
)
_TABS: Final = frozenset({"told", "record"})
_EVENTS_MAX: Final = 1000
_RECORD: Final = ("events", "transitions", "conflicts", "notifications", "readings")
_SILENCES: Final = {"P1D": "a day", "P3D": "three days", "P7D": "a week", "P30D": "a month"}


def path_of(
    shipment: Mapping[str, Any], *, as_of: str | None = None, is_one_of_several: bool = False
) -> str:
    """Return the path of a shipment's page.

    `is_one_of_several`: the number alone leads to another shipment.
    """
    query = {"as_of": as_of} if as_of else {}
    if is_one_of_several or shipment["discriminator"]:
        query["discriminator"] = shipment["discriminator"]
    path = f"{LIST}/{quote(shipment['carrier_id'], safe='')}/{quote(shipment['tracking_number'], safe='')}"
    return f"{path}?{urlencode(query)}" if query else path


# finding


async def show_list(visit: PageRequest) -> Mapping[str, Any] | Redirect:
    """Show the search results, or a page by the filters; a single result is shown at once."""
    wanted = {
        name: visit.query(name).strip()
        for name in ("carrier_id", "status", "reason", "flag", "in_trouble", "stalled_for")
    }
    sought = visit.query("q").strip()
    too_many = ""
    try:
        page = await _page(visit, wanted) if not sought else await _found(visit, sought)
    except Problem as problem:
        if problem.code is not Code.TOO_MANY:
            raise
        too_many, page = problem.detail, {"items": [], "next_cursor": None}
    if sought and len(page["items"]) == 1:
        return Redirect(path_of(page["items"][0]))
    return {
        "sought": sought,
        "too_many": too_many,
        "wanted": wanted,
        "lines": [
            (shipment, path_of(shipment, is_one_of_several=bool(sought)))
            for shipment in page["items"]
        ],
        "next_cursor": page["next_cursor"],
        "quick": [
            (name, f"{LIST}?{urlencode(chosen)}" if chosen else LIST, _is_chosen(wanted, chosen))
            for name, chosen in _QUICK
        ],
        "style": status_style,
        "town": town_of,
        "reasons": list(Reason),
        "carriers": sorted(CARRIERS),
        "statuses": list(Status),
        "silences": _SILENCES,
    }


def _is_chosen(wanted: Mapping[str, str], chosen: Mapping[str, str]) -> bool:
    return {name: value for name, value in wanted.items() if value} == chosen


async def _page(visit: PageRequest, wanted: Mapping[str, str]) -> Json:
    given = {name: value for name, value in wanted.items() if value}
    return await visit.call_api(
        "GET /v1/shipments",
        **given,
        order="newest",
        details=True,
        cursor=visit.query("cursor") or None,
    )


async def _found(visit: PageRequest, sought: str) -> Json:
    """Find by number of any carrier, by a shipper's reference, by a part of the number; by id."""
    if not _is_uuid(sought):
        return await visit.call_api(
            "GET /v1/shipments", sought=sought, order="newest", details=True, limit=LIMIT_MAX
        )
    found = await _unless(
        Code.NOT_FOUND, visit.call_api("GET /v1/shipments/{shipment_id}", shipment_id=sought)
    )
    return {"items": [] if found is None else [found], "next_cursor": None}


async def _unless(code: Code, asked: Awaitable[Json]) -> Json | None:
    """Return the answer; None for this problem."""
    try:
        return await asked
    except Problem as problem:
        if problem.code is not code:
            raise
        return None


def _is_uuid(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True


# one shipment


@dataclass(frozen=True, slots=True)
class AskedShipment:
    """A shipment, and as of when: the parameters of its calls."""

    carrier_id: str
    tracking_number: str
    discriminator: str | None
    as_of: str | None

    @classmethod
    def of(cls, visit: PageRequest) -> "AskedShipment":
        """Parse the page's address.

        A time without a zone, as forms send it, is UTC. Raises Problem.
        """
        return cls(
            carrier_id=visit.path("carrier_id"),
            tracking_number=visit.path("tracking_number"),
            discriminator=visit.request.query.get("discriminator"),
            as_of=_instant(visit.query("as_of")),
        )

    def at(self, as_of: str) -> "AskedShipment":
        """Return the shipment as of another time; empty: now. Raises Problem."""
        return replace(self, as_of=_instant(as_of))

    def given(self, *, as_of: bool = True) -> dict[str, Json]:
        number = {**self.number, "discriminator": self.discriminator}
        return {**number, "as_of": self.as_of} if as_of else number

    @property
    def number(self) -> dict[str, Json]:
        """Carrier and number, which several shipments may have."""
        return {"carrier_id": self.carrier_id, "tracking_number": self.tracking_number}

    @property
    def as_of_field(self) -> str:
        """Time as the field of a form has it: UTC, to the millisecond; empty: now."""
        if self.as_of is None:
            return ""
        return (
            datetime.fromisoformat(self.as_of)
            .astimezone(UTC)
            .replace(tzinfo=None)
            .isoformat(timespec="milliseconds")
        )

    def path(self, end: str = "", *, tab: str | None = None) -> str:
        """Return the path of one of its pages."""
        named = {"discriminator": self.discriminator, "as_of": self.as_of, "tab": tab}
        query = urlencode({name: value for name, value in named.items() if value is not None})
        path = (
            f"{LIST}/{quote(self.carrier_id, safe='')}/{quote(self.tracking_number, safe='')}{end}"
        )
        return f"{path}?{query}" if query else path


async def show_one(visit: PageRequest) -> Mapping[str, Any] | Redirect:
    """Show its page. `seen`: a step of the slider, as a time."""
    asked = AskedShipment.of(visit)
    if visit.query("seen"):
        seals = seals_of(await _history(visit, asked, as_of=False))
        step = visit.query("seen")
        if not step.isdecimal() or not 1 <= int(step) <= len(seals):
            raise Problem(Code.INVALID_REQUEST, "`seen` is no step of this shipment's record")
        is_last = int(step) == len(seals)
        return Redirect(
            replace(asked, as_of=None if is_last else seals[int(step) - 1].isoformat()).path()
        )
    return await _record(visit, asked)


async def disclose_personal(visit: PageRequest, _values: Values) -> Shown:
    """Show its page with personal fields; the API records it."""
    return Shown("shipment.html", await _record(visit, AskedShipment.of(visit), include="personal"))


async def _record(
    visit: PageRequest, asked: AskedShipment, include: str | None = None
) -> dict[str, Any]:
    """Return all that the page shows, as far as the scopes of the key go."""
    full = await _history(visit, asked, as_of=False) if asked.as_of else None
    values = {
        "title": f"{carrier_name(asked.carrier_id)} {asked.tracking_number}",
        "asked": asked,
        "bare": AskedShipment(asked.carrier_id, asked.tracking_number, None, None).path(),
        "today": replace(asked, as_of=None).path(),
        "personal": include is not None,
        "shipment": None,
    }
    try:
        audit = await _audit(visit, asked, include)
        page = await _whole_history(visit, asked, include)
    except Problem as problem:
        if problem.code is not Code.NOT_FOUND:
            raise
        if full is not None:
            return {**values, "seals": (seals := seals_of(full)), "seen": _step(seals, asked)}
        # references may be attached to a number of which nothing was said yet
        audit, page = (
            await _state_alone(visit, asked, include),
            {"items": [], "observations": [], "next_cursor": None},
        )
    known = {event["event_id"]: event for event in audit["events"]}
    shipment, causes = audit["shipment"], causes_of(audit["transitions"], audit["events"])
    lines = timeline_lines(
        page["items"], {causes[one["sequence"]]: one["to"] for one in audit["transitions"]}
    )
    return {
        **values,
        "tab": visit.query("tab") if visit.query("tab") in _TABS else "",
        "shipment": shipment,
        "carrier": carrier_name(asked.carrier_id),
        "style": status_style(shipment["status"]),
        "answer": answer_of(shipment, lines),
        "warned": (warned := contradicting(shipment, lines)),
        "contradicting": {one.version for one in warned},
        "flags": flag_sentences(shipment["flags"]),
        "others": [
            (other, path_of({**asked.given(), **other}, is_one_of_several=True))
            for other in shipment["others"]
        ],
        "same_parcel": [(other, path_of(other)) for other in shipment.get("same_parcel", [])],
        "lines": lines[::-1],
        "late": came_late(lines),
        "told": notified_changes(audit["notifications"], causes),
        "told_times": sorted(told_times(audit["notifications"])),
        "messages": len({event["message_id"] for event in audit["events"]}),
        "next_cursor": page["next_cursor"],
        "conflicts": [
            (conflict, conflict_sentences(conflict, known.get(conflict["event_id"])))
            for conflict in audit["conflicts"]
        ],
        "transitions": [(one, causes[one["sequence"]]) for one in audit["transitions"]],
        "notifications": audit["notifications"][::-1],
        "references": await _unless(
            Code.NOT_FOUND, visit.call_api(f"GET {CALL}/references", **asked.number)
        )
        if full is None
        else None,
        "observations": page["observations"],
        "remarks": REMARKS,
        "holds": (await visit.call_api("GET /v1/legal-holds", **asked.number))["items"]
        if visit.has(Scope.AUDIT)
        else [],
        "readings": audit["readings"],
        "has_more": audit["next_cursor"] is not None,
        "seals": (seals := seals_of(full if full is not None else page["items"])),
        "seen": _step(seals, asked),
    }


async def _whole_history(
    visit: PageRequest, asked: AskedShipment, include: str | None
) -> dict[str, Any]:
    """Return the events in timeline order, up to `_EVENTS_MAX`.

    The newest are first on the page, and last in the API's answer.
    """
    page: dict[str, Any] = {}
    cursor = visit.query("cursor") or None
    while True:
        more = await visit.call_api(
            f"GET {CALL}/history", **asked.given(), limit=LIMIT_MAX, cursor=cursor, include=include
        )
        page = {
            **page,
            **more,
            "items": [*page.get("items", []), *more["items"]],
            "observations": page.get("observations", more["observations"]),
        }
        cursor = more["next_cursor"]
        if cursor is None or len(page["items"]) >= _EVENTS_MAX:
            return page


def _step(seals: Sequence[datetime], asked: AskedShipment) -> int:
    """Return the slider's position: the last seal by then, from 1; 0 before the first."""
    if asked.as_of is None:
        return len(seals)
    return bisect_right(seals, datetime.fromisoformat(asked.as_of))


async def _history(
    visit: PageRequest, asked: AskedShipment, *, as_of: bool
) -> Sequence[Mapping[str, Any]]:
    page = await visit.call_api(f"GET {CALL}/history", **asked.given(as_of=as_of), limit=LIMIT_MAX)
    events: Sequence[Mapping[str, Any]] = page["items"]
    return events


async def _audit(visit: PageRequest, asked: AskedShipment, include: str | None) -> Json:
    """Return the record; without the scope, the state alone."""
    if visit.has(Scope.AUDIT):
        return await visit.call_api(f"GET {CALL}/audit", **asked.given(), include=include)
    return await _state_alone(visit, asked, include)


async def _state_alone(visit: PageRequest, asked: AskedShipment, include: str | None) -> Json:
    shipment = await visit.call_api(f"GET {CALL}", **asked.given(), include=include)
    nothing: list[Any] = []
    return {
        "shipment": shipment,
        **dict.fromkeys(_RECORD, nothing),
        "next_cursor": None,
    }


def _instant(text: str) -> str | None:
    if not text:
        return None
    try:
        at = datetime.fromisoformat(text.replace(" ", "+") if "T" in text else text)
    except ValueError:
        raise Problem(
            Code.INVALID_REQUEST, "`as_of` is not a valid time; use 2026-03-01T08:00 (UTC)"
        ) from None
    return (at if at.tzinfo is not None else at.replace(tzinfo=UTC)).isoformat()


def shipment_pages() -> tuple[list[Screen], list[PersonalDataRequest]]:
    return [
        Screen(
            path=LIST,
            title="Shipments",
            template="shipments.html",
            scope=Scope.READ,
            show=show_list,
            menu="Shipments",
            group=MenuGroup.PARCELS,
        ),
        Screen(
            path=ONE,
            title="Shipment",
            template="shipment.html",
            scope=Scope.READ,
            show=show_one,
            section=LIST,
        ),
    ], [
        PersonalDataRequest(
            path=PERSONAL,
            title="Shipment",
            scope=Scope.PII,
            disclose=disclose_personal,
            section=LIST,
        ),
    ]
