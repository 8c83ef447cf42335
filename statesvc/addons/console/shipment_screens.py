"""The whole record of a shipment, today or as of a day."""

from bisect import bisect_right
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlencode

from markupsafe import Markup

from projections.lifecycle import Flag
from statesvc.addons.console.formats import alarm, chip, instant, link, tabs
from statesvc.addons.console.screen import Act, PageBlock, PageRequest, Redirect, Screen
from statesvc.addons.console.shipment_lines import (
    causes_of,
    conflict_sentences,
    flag_sentences,
    seals_of,
    timeline_lines,
)
from statesvc.addons.console.shipment_record import identity, record_blocks, sent_blocks
from statesvc.addons.console.shipment_summary import (
    Objection,
    contradicting_scans,
    delivery_times,
    late_statements,
    notified_changes,
    status_sentence_of,
    status_style,
)
from statesvc.http.inner_calls import Json
from statesvc.http.keys.key_store import Scope
from statesvc.http.paging import LIMIT_MAX
from statesvc.http.problem import Code, Problem
from statesvc.http.views import path_segment
from statesvc.seams import is_on
from statesvc.shipments.plain_names import carrier_name, spaced
from statesvc.shipments.printed_times import stated_instant

LIST: Final = "/console/shipments"
ONE: Final = LIST + "/{carrier_id}/{tracking_number}"
CALL: Final = "/v1/shipments/{carrier_id}/{tracking_number}"
_ERASED: Final = (
    "Its personal data was erased. What remains names no person, and its proofs still hold."
)
_MASKED: Final = "The signer, the carrier's words and addresses are masked."
_EVENTS_MAX: Final = 1000
_RECORD: Final = ("events", "transitions", "conflicts", "notifications", "readings")


def path_of(shipment: Mapping[str, Any], *, is_one_of_several: bool = False) -> str:
    """Return the path of a shipment's page.

    `is_one_of_several`: the number alone leads to another shipment.
    """
    parts = [path_segment(shipment[name]) for name in ("carrier_id", "tracking_number")]
    path = f"{LIST}/{'/'.join(parts)}"
    if not is_one_of_several and not shipment["discriminator"]:
        return path
    return f"{path}?{urlencode({'discriminator': shipment['discriminator']})}"


async def unless(code: Code, asked: Awaitable[Json]) -> Json | None:
    """Return the answer; None for this problem."""
    try:
        return await asked
    except Problem as problem:
        if problem.code is not code:
            raise
        return None


@dataclass(frozen=True, slots=True)
class RequestedShipment:
    """A shipment, and as of when: the parameters of its calls."""

    carrier_id: str
    tracking_number: str
    discriminator: str | None
    as_of: str | None

    @classmethod
    def of(cls, visit: PageRequest) -> "RequestedShipment":
        """Parse the page's address, or the form that has its time.

        A time without a zone, as forms send it, is UTC. Raises Problem.
        """
        return cls(
            carrier_id=visit.path("carrier_id"),
            tracking_number=visit.path("tracking_number"),
            discriminator=visit.request.query.get("discriminator"),
            as_of=_instant(visit.query("as_of")),
        )

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
        query = urlencode(_given(named))
        path = path_of({**self.number, "discriminator": ""}) + end
        return f"{path}?{query}" if query else path


async def show_one(visit: PageRequest) -> Mapping[str, Any] | Redirect:
    """Show its page. `seen`: a step of the slider, as a time."""
    asked = RequestedShipment.of(visit)
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


async def _record(visit: PageRequest, asked: RequestedShipment) -> dict[str, Any]:
    """Return all that the page shows, as far as the scopes of the key go."""
    full = await _history(visit, asked, as_of=False) if asked.as_of else None
    values = {
        "title": f"{carrier_name(asked.carrier_id)} {asked.tracking_number}",
        "asked": asked,
        "bare": RequestedShipment(asked.carrier_id, asked.tracking_number, None, None).path(),
        "today": replace(asked, as_of=None).path(),
        "personal": visit.include,
        "shipment": None,
    }
    try:
        audit = await _audit(visit, asked)
        page = await _whole_history(visit, asked)
    except Problem as problem:
        if problem.code is not Code.NOT_FOUND:
            raise
        if full is not None:
            return {**values, "seals": (seals := seals_of(full)), "seen": _step(seals, asked)}
        # references may be attached to a number of which nothing was said yet
        audit, page = (
            await _state_alone(visit, asked),
            {"items": [], "observations": [], "next_cursor": None},
        )
    known = {event["event_id"]: event for event in audit["events"]}
    shipment, causes = audit["shipment"], causes_of(audit["transitions"], audit["events"])
    lines = timeline_lines(
        page["items"], {causes[one["sequence"]]: one["to"] for one in audit["transitions"]}
    )
    style = status_style(shipment["status"])
    warned, holds = contradicting_scans(shipment, lines), []
    if visit.has(Scope.AUDIT):
        holds = (await visit.call_api("GET /v1/legal-holds", **asked.number))["items"]
    conflicts = [
        (conflict, conflict_sentences(conflict, known.get(conflict["event_id"])))
        for conflict in audit["conflicts"]
    ]
    flags = flag_sentences(shipment["flags"])
    references = None
    if full is None:
        references = await unless(
            Code.NOT_FOUND, visit.call_api(f"GET {CALL}/references", **asked.number)
        )
    tab = visit.query("tab")
    blocks: list[PageBlock] = []
    if tab == "told" and visit.has(Scope.AUDIT):
        blocks = [*sent_blocks(asked.path(), audit["notifications"][::-1])]
    elif tab == "record":
        blocks = [
            identity(shipment, references),
            *record_blocks(asked.path(), audit, page["observations"], conflicts, causes),
        ]
    seals = seals_of(full if full is not None else page["items"])
    later = {"cursor": page["next_cursor"], "discriminator": asked.discriminator}
    later["as_of"] = asked.as_of
    evidence = link(asked.path("/evidence"), "Evidence for a case", "button")
    return {
        **values,
        "shipment": shipment,
        "crumb": (LIST, "Shipments", carrier_name(asked.carrier_id)),
        "chips": [
            chip(spaced(shipment["status"]), style),
            *(chip(name, "bad" if name == Flag.CONTRADICTED else "warn") for name, _ in flags),
            *([evidence] if is_on("evidence") and visit.has(Scope.AUDIT) else ()),
        ],
        "acts": [] if asked.as_of else _acts(asked, is_held=bool(holds)),
        "masked": "" if visit.include or shipment["erased"] else _MASKED,
        "form_path": asked.path(),
        "warnings": [*_warnings(asked, shipment, warned, conflicts, holds)],
        "tabs": _tabs(visit, asked, len(audit["notifications"])),
        "blocks": blocks,
        "answer": status_sentence_of(shipment, lines),
        "contradicting": {one.version for one in warned},
        "lines": lines[::-1],
        "late": late_statements(lines),
        "told": notified_changes(audit["notifications"], causes),
        "delivery_times": sorted(delivery_times(audit["notifications"])),
        "messages": len({event["message_id"] for event in audit["events"]}),
        "next_events": page["next_cursor"] and f"{values['bare']}?{urlencode(_given(later))}",
        "references": references,
        "observations": page["observations"],
        "seals": seals,
        "seen": _step(seals, asked),
    }


def _acts(asked: RequestedShipment, *, is_held: bool) -> list[Act]:
    hold = (
        ("/release-hold", "Release the legal hold") if is_held else ("/hold", "Place a legal hold")
    )
    return [
        Act(asked.path(end), words, Scope.ADMIN)
        for end, words in (hold, ("/erase", "Erase personal data"))
    ]


def _tabs(visit: PageRequest, asked: RequestedShipment, sent: int) -> Markup:
    tab, record = visit.query("tab"), asked.path(tab="record")
    told = (f"What was sent, and the answers: {sent:,}", asked.path(tab="told"), tab == "told")
    return tabs(
        "Parts of the record",
        [
            ("Timeline", asked.path(), tab not in {"told", "record"}),
            *([told] if visit.has(Scope.AUDIT) else ()),
            ("Identity and record", record, tab == "record"),
        ],
    )


def _warnings(
    asked: RequestedShipment,
    shipment: Mapping[str, Any],
    warned: Sequence[Objection],
    conflicts: Sequence[object],
    holds: Sequence[Mapping[str, Any]],
) -> Iterator[Markup]:
    """Yield what a reader has to know first, each in a box."""
    for one in warned:
        shown = link(f"#event-{one.version}", f"Show statement {one.version}", "button quiet")
        said = Markup("<b>Weigh this before you answer a dispute.</b> {}").format(one.sentence)
        yield alarm(said, "now", shown)
    for name, meaning in flag_sentences(shipment["flags"]):
        if name != Flag.CONTRADICTED or not warned:
            yield alarm(Markup("<b>{}</b>: {}").format(name, meaning), "human")
    if conflicts:
        words = "1 statement has" if len(conflicts) == 1 else f"{len(conflicts):,} statements have"
        said = Markup(
            "<b>{} other facts</b> than one known before under the same id; it changed nothing."
        ).format(words)
        differences = link(f"{asked.path(tab='record')}#contradictions", "What differs")
        yield alarm(said, "human", differences)
    if shipment["others"]:
        links = [
            link(
                path_of({**asked.given(), **other}, is_one_of_several=True),
                f"{spaced(other['status'])}, {stated_instant(other['last_event_at'])}",
            )
            for other in shipment["others"]
        ]
        said = Markup("<b>This number was used more than once.</b> The others: {}")
        yield alarm(said.format(Markup("; ").join(links)), "human")
    if same := shipment.get("same_parcel"):
        links = [
            link(path_of(other), f"{other['carrier_id']} {other['tracking_number']}")
            + f" {spaced(other['status'])}"
            for other in same
        ]
        said = Markup("<b>The same parcel, as others say it:</b> {}")
        yield alarm(said.format(Markup("; ").join(links)), "note")
    for hold in holds:
        said = Markup("A legal hold stands on its number since {}, by {}: {}")
        at = instant(hold["placed_at"])
        yield alarm(said.format(at, hold["placed_by"], hold["why"]), "note")
    if shipment["erased"]:
        yield alarm(_ERASED, "human")


def _given(parts: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in parts.items() if value is not None}


async def _whole_history(visit: PageRequest, asked: RequestedShipment) -> dict[str, Any]:
    """Return the events in timeline order, up to `_EVENTS_MAX`.

    The newest are first on the page, and last in the API's answer.
    """
    page: dict[str, Any] = {}
    cursor = visit.query("cursor") or None
    while True:
        more = await visit.call_api(
            f"GET {CALL}/history",
            **asked.given(),
            limit=LIMIT_MAX,
            cursor=cursor,
            include=visit.include,
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


def _step(seals: Sequence[datetime], asked: RequestedShipment) -> int:
    """Return the slider's position: the last seal by then, from 1; 0 before the first."""
    if asked.as_of is None:
        return len(seals)
    return bisect_right(seals, datetime.fromisoformat(asked.as_of))


async def _history(
    visit: PageRequest, asked: RequestedShipment, *, as_of: bool
) -> Sequence[Mapping[str, Any]]:
    page = await visit.call_api(f"GET {CALL}/history", **asked.given(as_of=as_of), limit=LIMIT_MAX)
    events: Sequence[Mapping[str, Any]] = page["items"]
    return events


async def _audit(visit: PageRequest, asked: RequestedShipment) -> Json:
    """Return the record; without the scope, the state alone."""
    if visit.has(Scope.AUDIT):
        return await visit.call_api(f"GET {CALL}/audit", **asked.given(), include=visit.include)
    return await _state_alone(visit, asked)


async def _state_alone(visit: PageRequest, asked: RequestedShipment) -> Json:
    shipment = await visit.call_api(f"GET {CALL}", **asked.given(), include=visit.include)
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


def shipment_pages() -> list[Screen]:
    about: dict[str, Any] = {"scope": Scope.READ, "section": LIST}
    return [
        Screen(
            path=ONE,
            title="Shipment",
            template="shipment.html",
            show=show_one,
            personal=Scope.PII,
            **about,
        ),
    ]
