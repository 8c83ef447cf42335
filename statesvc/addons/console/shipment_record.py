"""Tables of a shipment's record: what was sent, observed, concluded, and who read."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from markupsafe import Markup

from statesvc.addons.console.formats import heading, instant, stated
from statesvc.addons.console.shipment_lines import Event
from statesvc.delivery.outcome import outcome_words
from statesvc.http.views import Block, Cell, Column, Line, Listing, Table, draw
from statesvc.shipments.plain_names import REMARKS, spaced


def _place_in_log(entry: Event) -> str:
    index = entry["log_index"]
    return "not sealed yet" if index is None else f"entry {index:,}"


def _tries(one: Event) -> Markup | str:
    tries = [
        Markup("<div>{}: {}, {:,} ms</div>").format(
            instant(each["started_at"]),
            outcome_words(each["outcome"], each["status_code"]),
            each["duration_ms"],
        )
        for each in one["attempts"]
    ]
    return Markup().join(tries) or "none listed"


def _outcome(one: Event) -> Markup | str:
    if one["covered_by"]:
        return f"left out: that of statement {one['covered_by']} stood for it"
    if one["outcome"]:
        return spaced(one["outcome"])
    if not one["waiting"]:
        return "not ended"
    until = one["next_attempt_at"]
    return Markup("waits until {}").format(instant(until)) if until else "waits"


def _observed(one: Event) -> str:
    remark, kind = REMARKS.get(one["kind"]), spaced(one["kind"])
    return f"{kind}: {remark}" if remark else kind


def _read(one: Event) -> Markup | str:
    if one["call"]:
        return f"{one['call']} of {one['target']}"
    return Markup("{:,} more in the hour of {}").format(one["further"], instant(one["hour"]))


_CAUSE: Final = Column("because", "Because of", link=lambda one: one["path"])
_SENT: Final = Table(
    Column(lambda one: f"{spaced(one['from'])} → {spaced(one['to'])}", "What"),
    Column("type", wide=True),
    Column("webhook_id", "ID", wide=True),
    _CAUSE,
    Column(lambda one: one["receiver"] or one["subscription_id"], "Subscription"),
    Column(_tries, "Tries and answers"),
    Column(_outcome, "Outcome"),
    title="What was sent, and the answers",
    empty="Nothing was sent: there was no subscription to it.",
)
_OBSERVED: Final = Table(
    Column("recorded_at", "Noticed"),
    Column(_observed, "What"),
    Column("since", "The deadline"),
    Column("hours", "Hours allowed"),
    _CAUSE,
    Column(_place_in_log, "In the log"),
    title="What did not happen in time",
)
_CONCLUDED: Final = Table(
    Column("recorded_at", "Known"),
    Column(lambda one: spaced(one["from"]), "From"),
    Column(lambda one: spaced(one["to"]), "To"),
    _CAUSE,
    Column("worker", "By", wide=True),
    Column(_place_in_log, "In the log"),
    title="What we concluded",
)
_READINGS: Final = Table(
    Column("recorded_at", "When"),
    Column("actor", "By"),
    Column(_read, "What"),
    title="Who read personal data",
)


def _caused(path: str, row: Event, version: int) -> dict[str, Any]:
    """Return the row, with its cause: a statement of the timeline; 0: the lack of one."""
    if version <= 0:
        return {**row, "because": "what did not happen", "path": ""}
    return {**row, "because": f"statement {version}", "path": f"{path}#event-{version}"}


def sent_blocks(path: str, notifications: Sequence[Event]) -> list[Block]:
    rows = [_caused(path, one, one["sequence"]) for one in notifications]
    return draw(_SENT, {"items": rows})


def identity(shipment: Event, references: Event | None) -> Listing:
    facts: list[tuple[str, Any]] = [
        ("Number", shipment["tracking_number"]),
        ("Which of them", shipment["discriminator"]),
        ("Shipment ID", shipment["shipment_id"]),
        ("Statements", shipment["version"]),
        *((references or {}).get("metadata") or {}).items(),
        ("Since", stated(shipment["status_since"])),
        ("Delivered", stated(shipment["delivered_at"])),
        ("Expected", shipment["estimated_delivery"]),
        ("Service", shipment["service"]),
        ("Last event", stated(shipment["last_event_at"]) or "none yet"),
        ("Last change known", instant(shipment["recorded_at"])),
    ]
    return Listing(title="", facts=[(name, Cell(value)) for name, value in facts if value])


def record_blocks(
    path: str,
    audit: Event,
    observations: Sequence[Event],
    conflicts: Sequence[tuple[Event, Sequence[str]]],
    causes: Mapping[int, int],
) -> Iterator[Block | Markup]:
    """Yield what is on record besides the timeline. `path`: the shipment's page."""
    if conflicts:
        yield heading("Contradictions")
    for conflict, sentences in conflicts:
        said = " ".join([*sentences, f"({_place_in_log(conflict)})"])
        yield Line(Markup("Known {}. {}").format(instant(conflict["recorded_at"]), said))
    observed = [_caused(path, one, one["version"]) for one in observations]
    yield from draw(_OBSERVED, {"items": observed})
    concluded = [_caused(path, one, causes[one["sequence"]]) for one in audit["transitions"]]
    yield from draw(_CONCLUDED, {"items": concluded})
    yield from draw(_READINGS, {"items": audit["readings"]})
    if audit["next_cursor"] is not None:
        yield Line("The record is longer than this page: the API has the rest, by next_cursor.")
