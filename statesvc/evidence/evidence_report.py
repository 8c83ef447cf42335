"""A bundle in words for people: what happened, when, and how to check it. Pure, and made of the bundle alone."""

import base64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import orjson

from events.carriers import CARRIERS
from events.checkpoint import read_checkpoint
from events.entry import read_raw
from events.identity import carrier_code
from statesvc.evidence import wording as words
from statesvc.evidence.back_dated import back_dated_entries
from statesvc.evidence.bundle import ERASED, UNAVAILABLE, WITHHELD, Bundle, attempts_of
from statesvc.shipments.notification_trail import LoggedNotification, notifications_of

_FIRST_MOVES: Final = frozenset({"picked_up", "in_transit", "available_for_pickup", "out_for_delivery", "delivered"})
_ERASED: Final = "erased at the person's request"
_WITHHELD: Final = "not shown to this reader"
_NOT_SHOWN: Final = {ERASED: _ERASED, WITHHELD: _WITHHELD, UNAVAILABLE: "not stored: its commitment is in the entry of the attempt"}


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementLine:
    """One statement of the carrier, or one conclusion of ours. `occurred`: its own clock and zone; `recorded`: ours, when we knew it."""

    index: int
    occurred: str
    recorded: str
    what: str
    where: str
    code: str
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptLine:
    """One attempt at notifying a subscriber, or why there is none."""

    index: int
    at: str
    receiver: str
    what: str
    answer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SentBodyLine:
    """What a subscriber was sent, word for word, or why it is not shown. `attempts`: the numbers of those that carried it."""

    webhook_id: str
    receiver: str
    attempts: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionLine:
    """What an operator did."""

    index: int
    at: str
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceReport:
    """Everything that the HTML page and the PDF show, as text."""

    title: str
    verdict: str
    facts: Sequence[tuple[str, str]]
    statements: Sequence[StatementLine] = field(default_factory=tuple)
    conclusions: Sequence[StatementLine] = field(default_factory=tuple)
    contradictions: Sequence[StatementLine] = field(default_factory=tuple)
    attempts: Sequence[AttemptLine] = field(default_factory=tuple)
    bodies: Sequence[SentBodyLine] = field(default_factory=tuple)
    actions: Sequence[ActionLine] = field(default_factory=tuple)
    proof: Sequence[tuple[str, str]] = field(default_factory=tuple)
    checkpoint: str = ""


def report_of(bundle: Bundle) -> EvidenceReport:
    """The report on a bundle that was gathered by this release, or by an earlier one."""
    shipment = bundle["shipment"]
    entries = [_Entry.of(entry) for entry in bundle["entries"]]
    carrier = CARRIERS[shipment["carrier_id"]].name if shipment["carrier_id"] in CARRIERS else shipment["carrier_id"]
    events = [entry for entry in entries if entry.kind == "event"]
    sent = {key: each for each in bundle["sent"] for key in attempts_of(each)}
    head = read_checkpoint(bundle["log"]["checkpoint"])
    return EvidenceReport(
        title=f"{carrier} {shipment['tracking_number']}",
        verdict=_verdict(shipment, _delivery(bundle, events)),
        facts=[*_facts(bundle, carrier, events), *_back_dated(bundle, entries)],
        statements=[_statement(entry) for entry in sorted(events, key=lambda entry: (_at(entry), entry.index))],
        conclusions=[_conclusion(entry, events) for entry in entries if entry.kind == "transition"],
        contradictions=[_statement(entry) for entry in entries if entry.kind == "conflict"],
        attempts=sorted(_attempts(entries, sent), key=lambda line: line.index),
        bodies=[_body(each) for each in bundle["sent"]],
        actions=[_action(entry) for entry in entries if entry.kind == "action"],
        proof=[
            ("Log", head.origin),
            ("Entries in the log", f"{head.size:,}"),
            ("Sealed", _utc(bundle["log"]["sealed_at"])),
            ("Document made", _utc(bundle["made_at"])),
            *_stamp(bundle["log"].get("stamp"), entries),
            *((f"Public key {place}", key) for place, key in enumerate(bundle["log"]["keys"], start=1)),
        ],
        checkpoint=bundle["log"]["checkpoint"],
    )


def _stamp(stamp: Mapping[str, Any] | None, entries: Sequence["_Entry"]) -> Iterator[tuple[str, str]]:
    """Since when an independent authority vouches for the entries."""
    if stamp is None:
        return
    size = read_checkpoint(stamp["checkpoint"]).size
    later = sum(entry.index >= size for entry in entries)
    covered = "all entries of this document" if not later else f"all entries of this document except the last {later}"
    yield "Time stamp", f"{_utc(stamp['stamped_at'])} (RFC 3161), of {covered}"
    yield "Stamped by", stamp["authority"]


@dataclass(frozen=True, slots=True)
class _Entry:
    index: int
    kind: str
    document: Mapping[str, Any]
    part: Mapping[str, Any]
    part_state: str

    @classmethod
    def of(cls, entry: Mapping[str, Any]) -> "_Entry":
        part = {} if entry["part"] is None else orjson.loads(base64.b64decode(entry["part"])[32:])
        return cls(entry["index"], entry["kind"], orjson.loads(entry["canonical"]), part, entry["part_state"])

    def personal(self, name: str) -> str | None:
        """A personal value, or why it is not shown; None: there is none."""
        if self.part_state == "erased":
            return _ERASED
        if self.part_state == "withheld":
            return _WITHHELD
        return self.part.get(name)


def _facts(bundle: Bundle, carrier: str, events: Sequence[_Entry]) -> Iterator[tuple[str, str]]:
    """What card networks and payment processors ask for, in their order."""
    shipment = bundle["shipment"]
    yield "Carrier", carrier
    yield "Tracking number", shipment["tracking_number"]
    yield "State", _words(shipment["status"])
    moved = [entry for entry in events if entry.document.get("status") in _FIRST_MOVES]
    if moved:
        yield "Shipped", _local(min(moved, key=_at).document)
    delivery = _delivery(bundle, events)
    if delivery is not None:
        yield "Delivered", _local(delivery.document)
        yield "Delivered at", _place(delivery) or "no place given"
        address = _first(events, "delivery_address")
        if address:
            yield "Delivery address", address
    signer = shipment.get("signed_by") or _first(events, "signed_by")
    yield "Signed by", signer or "no signature was given by the carrier"
    if shipment["flags"]:
        yield "Remarks", "; ".join(words.REMARKS.get(flag, _words(flag)) for flag in shipment["flags"])
    if shipment["erased"]:
        yield "Personal data", _ERASED


def _back_dated(bundle: Bundle, entries: Sequence[_Entry]) -> Iterator[tuple[str, str]]:
    """Entries that say an earlier time than what stands before them in the log."""
    for place, latest in back_dated_entries(bundle["entries"], [entry.document for entry in entries]):
        entry = entries[place]
        why = f"what was recorded {_utc(latest)} stands before it in the log: it was inserted with an old time, or a clock was wrong"
        yield "Back-dated", f"entry {entry.index} says {_utc(entry.document['recorded_at'])}, but {why}"


def _delivery(bundle: Bundle, events: Sequence[_Entry]) -> _Entry | None:
    at = bundle["shipment"]["delivered_at"]
    if at is None and bundle["shipment"]["status"] != "delivered":
        return None
    deliveries = [entry for entry in events if entry.document.get("status") == "delivered"]
    exact = [entry for entry in deliveries if at and _at(entry) == datetime.fromisoformat(at)]
    return next(iter(exact or deliveries), None)


def _first(events: Sequence[_Entry], name: str) -> str | None:
    return next((value for entry in events if (value := entry.personal(name)) not in {None, "", _ERASED, _WITHHELD}), None)


def _statement(entry: _Entry) -> StatementLine:
    document = entry.document
    notes = []
    if document["kind"] == "correction":
        notes.append(f"corrects {document['corrects']}" if document.get("corrects") else "retracts an earlier scan")
    if document["kind"] == "unmapped":
        notes.append("an unknown code: the status stayed as it was")
    if signer := entry.personal("signed_by"):
        notes.append(f"signed by {signer}" if signer not in {_ERASED, _WITHHELD} else "")
    description = entry.personal("description")
    status = document.get("status")
    reading = _words(status) if status else {"info": "information"}.get(document["kind"], document["kind"])
    return StatementLine(
        index=entry.index,
        occurred=_local(document),
        recorded=_utc(document["recorded_at"]),
        what=f"{reading}: {description}" if description else reading,
        where=_place(entry),
        code=carrier_code(read_raw(entry.part["raw"])) or "" if "raw" in entry.part else document.get("carrier_code") or "",
        note="; ".join(filter(None, notes)),
    )


def _conclusion(entry: _Entry, events: Sequence[_Entry]) -> StatementLine:
    document = entry.document
    return StatementLine(
        index=entry.index,
        occurred="",
        recorded=_utc(document["recorded_at"]),
        what=f"{_words(document['from'])} → {_words(document['to'])}",
        where="",
        code=_cause(document, events),
    )


def _cause(transition: Mapping[str, Any], events: Sequence[_Entry]) -> str:
    """What came together and moved the state, as places in the log."""
    places = sorted(entry.index for entry in events if entry.document["message_id"] == transition["message_id"])
    if len(places) > 1:
        return f"the {len(places)} entries {places[0]} to {places[-1]}, which came in one message"
    return f"entry {places[0]}" if places else str(transition["event_id"])


def _attempts(entries: Sequence[_Entry], sent: Mapping[tuple[str, int | None], Mapping[str, Any]]) -> Iterator[AttemptLine]:
    """Each try, and each notification that was not tried or has not ended."""
    receivers = {each["subscription_id"]: each["receiver"] for each in sent.values()}
    fanouts, ends = ([(entry.document, entry) for entry in entries if entry.kind == kind] for kind in ("fanout", "attempt"))
    for key, one in notifications_of(fanouts, ends).items():
        receiver = receivers.get(key.subscription_id) or key.subscription_id
        what = f"{_words(one.from_status)} → {_words(one.to_status)}"
        for each in one.tries:
            at = _utc(each.document["started_at"])
            yield AttemptLine(index=each.entry.index, at=at, receiver=receiver, what=what, answer=_answer(each.document))
        if why := _why_unsent(one):
            document, entry = one.fanouts[-1]
            yield AttemptLine(index=entry.index, at=_utc(document["recorded_at"]), receiver=receiver, what=what, answer=why)


def _why_unsent(one: LoggedNotification) -> str:
    if one.covered_by is not None:
        return f"left out: the one of change {one.covered_by} stood for it"
    if one.outcome is None:
        return "not ended yet"
    return "" if one.tries else f"{_words(one.outcome)}, never attempted"


def _answer(one: Mapping[str, Any]) -> str:
    status = one.get("status_code")
    return f"{_words(one['outcome'])}{f' (HTTP {status})' if status else ''}, attempt {one['number']}"


def _body(message: Mapping[str, Any]) -> SentBodyLine:
    return SentBodyLine(
        webhook_id=message["webhook_id"],
        receiver=message["receiver"],
        attempts=", ".join(map(str, message.get("attempts", ()))) or "all",
        text=message["body"] or _NOT_SHOWN[message.get("body_state", UNAVAILABLE)],
    )


def _action(entry: _Entry) -> ActionLine:
    document = entry.document
    why = document.get("details", {}).get("why")
    return ActionLine(
        index=entry.index,
        at=_utc(document["recorded_at"]),
        what=f"{_words(document['verb'])} by {document['actor']}{f': {why}' if why else ''}",
    )


def _verdict(shipment: Mapping[str, Any], delivery: _Entry | None) -> str:
    """Says no more of the time than the carrier did."""
    if shipment["status"] == "delivered" and not shipment["delivered_at"]:
        return "The carrier reported this parcel as delivered, without saying when."
    if shipment["status"] == "delivered":
        day_only = delivery is not None and delivery.document["time_precision"] == "day"
        at = f"on {datetime.fromisoformat(shipment['delivered_at']):%Y-%m-%d}" if day_only else f"at {_instant(shipment['delivered_at'])}"
        return f"The carrier reported this parcel as delivered {at}."
    return f"The carrier's latest statement about this parcel: {_words(shipment['status'])}, {_instant(shipment['last_event_at'])}."


def _words(name: str) -> str:
    return name.replace("_", " ").replace(".", " ")


def _at(entry: _Entry) -> datetime:
    return datetime.fromisoformat(entry.document["occurred_at"])


def _place(entry: _Entry) -> str:
    place = {**(entry.document.get("location") or {}), **entry.part}
    return ", ".join(place[part] for part in ("facility", "city", "region", "postal_code", "country") if place.get(part))


def _local(document: Mapping[str, Any]) -> str:
    """The carrier's own clock and zone, as precise as it was."""
    at = datetime.fromisoformat(document["occurred_at"])
    zone = {"assumed_utc": " (no zone given, read as UTC)", "received": " (time of receipt)", "carrier_default": " (carrier's home zone)"}
    shown = f"{at:%Y-%m-%d}" if document["time_precision"] == "day" else f"{at:%Y-%m-%d %H:%M:%S} {_offset(at)}"
    return shown + zone.get(document["tz_source"], "")


def _instant(text: str) -> str:
    at = datetime.fromisoformat(text)
    return f"{at:%Y-%m-%d %H:%M:%S} {_offset(at)}"


def _offset(at: datetime) -> str:
    offset = f"{at:%z}"
    return "UTC" if offset == "+0000" else f"UTC{offset[:3]}:{offset[3:5]}"


def _utc(text: str) -> str:
    return f"{datetime.fromisoformat(text).astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
