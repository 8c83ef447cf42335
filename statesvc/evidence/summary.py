"""The first page: who, what, where, when, who signed, whether it is the merchant's address, and how we know. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from events.parsing.service_name import service_key
from statesvc.evidence import wording as words
from statesvc.evidence.back_dated import back_dated_entries
from statesvc.evidence.bundle_entry import ERASED_TEXT, BundleEntry, first_personal
from statesvc.evidence.dispute_fields import AGGREGATORS, carrier_name
from statesvc.evidence.merchant_statement import MerchantStatement, read_statement
from statesvc.evidence.milestones import Milestones
from statesvc.evidence.place_agreement import Agreement, PlaceComparison, compare_places
from statesvc.evidence.printed_times import carrier_time_in_words, stated_instant, utc
from statesvc.evidence.proof_of_delivery import DeliveryProof

_AGREEMENT: Mapping[Agreement, str] = {
    Agreement.AGREES: "agrees",
    Agreement.IN_PART: "agrees in part",
    Agreement.DIFFERS: "DIFFERS",
    Agreement.NOT_COMPARABLE: "cannot be compared",
}
_PARTS = {"city": "City", "postal_code": "Postcode", "country": "Country"}
Facts = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceSummary:
    """As text. `facts`: the carrier's; `stated`: the merchant's; `agreement`: part, carrier, merchant, result, a line each."""

    verdict: str
    as_of: str = ""
    facts: Facts = field(default_factory=tuple)
    stated: Facts = field(default_factory=tuple)
    agreement: Sequence[tuple[str, str, str, str]] = field(default_factory=tuple)
    knowledge: Sequence[str] = field(default_factory=tuple)
    remarks: Sequence[str] = field(default_factory=tuple)


def summary_of(
    bundle: Mapping[str, Any], entries: Sequence[BundleEntry], milestones: Milestones, proofs: Sequence[DeliveryProof]
) -> EvidenceSummary:
    """Of the bundle alone."""
    events = [entry for entry in entries if entry.kind == "event"]
    statement = read_statement(bundle)
    ship_to = None if statement is None else statement.ship_to
    return EvidenceSummary(
        verdict=_verdict(bundle["shipment"], milestones.delivery),
        as_of=_as_of(bundle.get("as_of")),
        facts=list(_facts(bundle, events, milestones, proofs)),
        stated=[] if statement is None else list(_stated(statement)),
        agreement=[] if ship_to is None else [_comparison(each) for each in compare_places(milestones.delivery, ship_to)],
        knowledge=list(_knowledge(bundle, events, milestones)),
        remarks=list(_remarks(bundle, entries)),
    )


def _verdict(shipment: Mapping[str, Any], delivery: BundleEntry | None) -> str:
    """Says no more of the time than the carrier did."""
    if shipment["status"] != "delivered":
        return (
            f"The carrier's latest statement about this parcel: {spaced(shipment['status'])}, {stated_instant(shipment['last_event_at'])}."
        )
    if delivery is None or not shipment["delivered_at"]:
        return "The carrier reported this parcel as delivered, without saying when."
    return f"The carrier reported this parcel as delivered on {carrier_time_in_words(delivery.document)}."


def _as_of(stated: Mapping[str, Any] | None) -> str:
    if stated is None:
        return ""
    at = f"What was known on {utc(stated['at'])}, and nothing that became known later."
    return at + (" A later time was asked for; this is the last one for which the answer is final." if stated["clamped"] else "")


def _facts(
    bundle: Mapping[str, Any], events: Sequence[BundleEntry], milestones: Milestones, proofs: Sequence[DeliveryProof]
) -> Iterator[tuple[str, str]]:
    shipment = bundle["shipment"]
    reporter = carrier_name(shipment["carrier_id"])
    yield ("Reported by", f"{reporter}, which reports for carriers") if shipment["carrier_id"] in AGGREGATORS else ("Carrier", reporter)
    yield "Tracking number", shipment["tracking_number"]
    if service := shipment["service"]:
        yield "Service", service + _other_services(service, events)
    yield "State", spaced(shipment["status"])
    if milestones.picked_up is not None:
        yield "Shipped", f"{carrier_time_in_words(milestones.picked_up.document)}, by the carrier's pick-up scan{_at(milestones.picked_up)}"
    elif milestones.first_scan is not None:
        scanned = milestones.first_scan
        yield "First scan", f"{carrier_time_in_words(scanned.document)}{_at(scanned)}; the carrier reported no pick-up"
    delivery = milestones.delivery
    if delivery is not None:
        yield "Delivered", carrier_time_in_words(delivery.document)
        yield "Delivered at", delivery.place or "no place was given by the carrier"
        if address := first_personal([delivery, *events], "delivery_address"):
            yield "Delivery address", address
        if description := delivery.part.get("description"):
            yield "Carrier's words", f"“{' '.join(description.split())}”"
    signer = shipment.get("signed_by") or first_personal(events, "signed_by")
    hidden = next((entry.hidden for entry in events if entry.hidden), None)
    yield "Signed by", signer or hidden or "no signature was given by the carrier"
    for proof in proofs:
        yield f"Carrier's {proof.what}", proof.link or "pushed by the carrier, printed after the list of its statements"


def _other_services(last: str, events: Sequence[BundleEntry]) -> str:
    """What the carrier also called it: a parcel may be moved to another service on its way."""
    named = {service_key(service): service for entry in events if (service := entry.document.get("service"))}
    others = [service for key, service in sorted(named.items()) if key != service_key(last)]
    return f", as last stated; also stated: {'; '.join(others)}" if others else ""


def _at(entry: BundleEntry) -> str:
    return f" at {entry.place}" if entry.place else ""


def _stated(statement: MerchantStatement) -> Iterator[tuple[str, str]]:
    yield "Case", statement.case + (f", reason code {statement.reason_code}" if statement.reason_code else "")
    if merchant := statement.merchant:
        yield "Merchant", _joined(merchant.name, merchant.descriptor, merchant.contact)
    if order := statement.order:
        placed = f"placed on {order.placed_on}" if order.placed_on else None
        yield "Order", _joined(order.number, placed, order.amount, order.description)
    if customer := statement.customer:
        yield "Customer", _joined(customer.name, customer.email, customer.phone, customer.ip_address)
    if ship_to := statement.ship_to:
        yield "Ship to", _joined(ship_to.name, ship_to.address)


def _joined(*parts: str | None) -> str:
    return ", ".join(filter(None, parts))


def _comparison(each: PlaceComparison) -> tuple[str, str, str, str]:
    result = _AGREEMENT[each.agreement] + (f": {each.why}" if each.why else "")
    return _PARTS[each.part], each.carrier or "–", each.merchant or "–", result


def _knowledge(bundle: Mapping[str, Any], events: Sequence[BundleEntry], milestones: Milestones) -> Iterator[str]:
    """How we know."""
    received = sorted(entry.document["received_at"] for entry in events)
    messages = len({entry.document["message_id"] for entry in events})
    span = f"on {utc(received[0])}" if received[0] == received[-1] else f"from {utc(received[0])} to {utc(received[-1])}"
    yield (
        f"{carrier_name(bundle['shipment']['carrier_id'])} made {_counted(len(events), 'statement')} about this parcel in "
        f"{_counted(messages, 'message')}, received {span}, and stored as they came."
    )
    if milestones.delivery is not None:
        yield _delivery_known(milestones.delivery)
    yield words.SEALED
    if stamp := bundle["log"].get("stamp"):
        yield f"An independent authority, {stamp['authority']}, time-stamped the log on {utc(stamp['stamped_at'])}."


def _delivery_known(delivery: BundleEntry) -> str:
    document = delivery.document
    message = f"Its statement of the delivery came on {utc(document['received_at'])}"
    later = datetime.fromisoformat(document["received_at"]) - delivery.at
    if document["time_precision"] == "day" or document["tz_source"] in {"received", "assumed_utc"} or later < timedelta(0):
        return f"{message}, and is entry {delivery.index} of the log."
    return f"{message}, {_duration(later)} after it happened, and is entry {delivery.index} of the log."


def _duration(length: timedelta) -> str:
    """In the largest unit of which there are two."""
    seconds = int(length.total_seconds())
    for name, size in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= 2 * size:
            return _counted(seconds // size, name)
    return _counted(seconds, "second")


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _remarks(bundle: Mapping[str, Any], entries: Sequence[BundleEntry]) -> Iterator[str]:
    """What speaks against it, or what a reader must know to weigh it."""
    shipment = bundle["shipment"]
    for flag in shipment["flags"]:
        yield words.REMARKS.get(flag, spaced(flag))
    if conflicts := sum(entry.kind == "conflict" for entry in entries):
        yield f"{_counted(conflicts, 'statement')} with other facts under a known id, listed as contradictions; they changed nothing"
    for place, latest in back_dated_entries(bundle["entries"], [entry.document for entry in entries]):
        says = f"entry {entries[place].index} says {utc(entries[place].document['recorded_at'])}"
        why = f"what was recorded {utc(latest)} stands before it in the log: it was inserted with an old time, or a clock was wrong"
        yield f"Back-dated: {says}, but {why}"
    if shipment["erased"]:
        yield f"personal data: {ERASED_TEXT}"


def spaced(name: str) -> str:
    """A word of ours as people write it."""
    return name.replace("_", " ").replace(".", " ")
