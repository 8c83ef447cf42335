"""The first page: case, answer, objections, signers, addresses, and the basis of our knowledge.

Pure.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from events.merkle.checkpoint import read_checkpoint
from events.parsing.service_name import service_key
from events.vocabulary import Status
from statesvc.addons.evidence import wording as words
from statesvc.addons.evidence.bundle_entry import (
    STEPS,
    BundleEntry,
    Milestones,
    carriers_words,
    first_personal,
    one_line,
    signer_of,
    why_unsigned,
)
from statesvc.addons.evidence.code_meanings import code_meaning
from statesvc.addons.evidence.dispute_fields import AGGREGATORS
from statesvc.addons.evidence.merchant_statement import MerchantStatement, read_statement
from statesvc.addons.evidence.notified import notified_in_words
from statesvc.addons.evidence.objections import remarks_of, used_twice
from statesvc.addons.evidence.proof_of_delivery import DeliveryProof
from statesvc.background.duration import duration
from statesvc.http.views import counted
from statesvc.shipments.plain_names import carrier_name, spaced
from statesvc.shipments.printed_times import (
    day,
    local_time,
    stated_time,
    stated_time_in_a_sentence,
    utc,
)

_STEPS: Final[Mapping[Status, str]] = {
    Status.INFO_RECEIVED: "Label made",
    Status.PICKED_UP: "Picked up",
    Status.IN_TRANSIT: "In transit",
    Status.OUT_FOR_DELIVERY: "Out for delivery",
    Status.DELIVERED: "Delivered",
}
Facts = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceSummary:
    """Summary as text.

    `merchant`, `case`: the head. `lead`: the answer, in pieces; those with True count most.

    `steps`: name, time, place, reached. `facts`: the carrier's; `stated`: the merchant's;
    `check`: the foot.
    """

    lead: Sequence[tuple[str, bool]]
    merchant: str = ""
    case: str = ""
    notices: Sequence[str] = field(default_factory=tuple)
    steps: Sequence[tuple[str, str, str, bool]] = field(default_factory=tuple)
    remarks: Sequence[str] = field(default_factory=tuple)
    facts: Facts = field(default_factory=tuple)
    stated: Facts = field(default_factory=tuple)
    notified: Sequence[str] = field(default_factory=tuple)
    knowledge: Sequence[str] = field(default_factory=tuple)
    check: Sequence[str] = field(default_factory=tuple)

    @property
    def verdict(self) -> str:
        return "".join(text for text, _ in self.lead)


def summary_of(
    bundle: Mapping[str, Any],
    entries: Sequence[BundleEntry],
    milestones: Milestones,
    proofs: Sequence[DeliveryProof],
) -> EvidenceSummary:
    """Build the summary from the bundle alone."""
    events = sorted(
        (entry for entry in entries if entry.kind == "event"),
        key=lambda entry: (entry.at, entry.index),
    )
    statement = read_statement(bundle)
    return EvidenceSummary(
        merchant=_merchant(bundle, statement),
        case=_case(bundle, statement),
        lead=list(_lead(bundle, events, milestones)),
        notices=[
            notice for notice in (used_twice(bundle, events), _as_of(bundle.get("as_of"))) if notice
        ],
        steps=list(_steps(milestones)),
        remarks=list(remarks_of(bundle, entries, milestones)),
        facts=list(_facts(bundle, events, milestones, proofs)),
        stated=[] if statement is None else list(_stated(statement)),
        notified=notified_in_words(bundle, entries),
        knowledge=list(_knowledge(bundle, events, milestones)),
        check=list(_check(bundle)),
    )


def _merchant(bundle: Mapping[str, Any], statement: MerchantStatement | None) -> str:
    if statement is None or statement.merchant is None:
        return f"Parcel {bundle['shipment']['tracking_number']}"
    return " · ".join(
        filter(
            None,
            (statement.merchant.name, statement.merchant.descriptor, statement.merchant.contact),
        )
    )


def _case(bundle: Mapping[str, Any], statement: MerchantStatement | None) -> str:
    made = f"made {utc(bundle['made_at'])}"
    if statement is None:
        return made
    reason = f"reason code {statement.reason_code}" if statement.reason_code else None
    return " · ".join(filter(None, (f"Case {statement.case}", reason, made)))


def _lead(
    bundle: Mapping[str, Any], events: Sequence[BundleEntry], milestones: Milestones
) -> Iterator[tuple[str, bool]]:
    """State the verdict, saying no more of the time than the carrier did."""
    shipment, delivery = bundle["shipment"], milestones.delivery
    name = carrier_name(shipment["carrier_id"])
    yield (
        (
            f"{name}{', for the carrier,' if shipment['carrier_id'] in AGGREGATORS else ''}"
            " reported parcel "
        ),
        False,
    )
    yield shipment["tracking_number"], True
    if shipment["status"] != Status.DELIVERED:
        latest = _latest(shipment, events, milestones)
        yield " last as ", False
        yield f"{spaced(shipment['status'])}, on {stated_time_in_a_sentence(latest.document)}", True
        yield _there(latest), False
        if delivery is not None:
            yield (
                (
                    ". Before that it reported a delivery, on"
                    f" {stated_time_in_a_sentence(delivery.document)}."
                ),
                False,
            )
        else:
            yield (
                f". It reported no delivery{' that still stands' if milestones.corrected else ''}.",
                False,
            )
        return
    yield " as ", False
    if delivery is None or not shipment["delivered_at"]:
        yield "delivered", True
        yield ", without saying when", False
    else:
        yield f"delivered on {stated_time_in_a_sentence(delivery.document)}", True
        yield _there(delivery), False
    if signer := signer_of(shipment, events, milestones):
        yield ", signed by ", False
        yield signer, True
    yield ".", False


def _latest(
    shipment: Mapping[str, Any], events: Sequence[BundleEntry], milestones: Milestones
) -> BundleEntry:
    """Return the last statement of the status, as it reads after corrections."""
    saying = [
        entry
        for entry in events
        if milestones.readings.get(entry.document["event_id"]) == shipment["status"]
    ]
    return (saying or events)[-1]


def _there(entry: BundleEntry) -> str:
    there = local_time(entry.document, entry.location)
    return f" ({there}, computed from the place)" if there else ""


def _as_of(stated: Mapping[str, Any] | None) -> str:
    if stated is None:
        return ""
    at = f"What was known on {utc(stated['at'])}, and nothing that became known later."
    return at + (
        " A later time was asked for; this is the last one for which the answer is final."
        if stated["clamped"]
        else ""
    )


def _steps(milestones: Milestones) -> Iterator[tuple[str, str, str, bool]]:
    for status in STEPS:
        entry = milestones.steps.get(status)
        if entry is None:
            yield _STEPS[status], "not reported", "", False
        else:
            where = one_line(
                filter(
                    None,
                    (
                        entry.location.get("city"),
                        entry.location.get("region") or entry.location.get("country"),
                    ),
                )
            )
            # the zone's source stands with the fact itself
            yield _STEPS[status], stated_time(entry.document).partition(" (")[0], where, True


def _facts(
    bundle: Mapping[str, Any],
    events: Sequence[BundleEntry],
    milestones: Milestones,
    proofs: Sequence[DeliveryProof],
) -> Iterator[tuple[str, str]]:
    shipment = bundle["shipment"]
    reporter = carrier_name(shipment["carrier_id"])
    yield (
        ("Reported by", f"{reporter}, which reports for carriers")
        if shipment["carrier_id"] in AGGREGATORS
        else ("Carrier", reporter)
    )
    yield "Number", shipment["tracking_number"]
    if service := shipment["service"]:
        yield "Service", service + _other_services(service, events)
    if shipment["status"] != Status.DELIVERED:
        yield "State", spaced(shipment["status"])
    if milestones.picked_up is not None:
        yield (
            "Shipped",
            (
                f"{stated_time(milestones.picked_up.document)}, by its pick-up"
                f" scan{_at(milestones.picked_up)}"
            ),
        )
    elif milestones.first_scan is not None:
        scanned = milestones.first_scan
        yield (
            "First scan",
            f"{stated_time(scanned.document)}{_at(scanned)}; no pick-up was reported",
        )
    delivery = milestones.delivery
    if delivery is not None:
        there = local_time(delivery.document, delivery.location)
        yield (
            "Delivered",
            stated_time(delivery.document) + (f" (computed: {there})" if there else ""),
        )
    if promised := shipment.get("estimated_delivery"):
        yield "Promised", f"for {day(promised)}, by the carrier’s last estimate"
    last = delivery or _latest(shipment, events, milestones)
    yield "Place", last.place or "not stated by the carrier"
    if delivery is not None and (
        address := first_personal([delivery, *events], "delivery_address")
    ):
        yield "Address", address
    yield from _said(last)
    yield "Signed by", signer_of(shipment, events, milestones) or why_unsigned(events, milestones)
    for proof in proofs:
        yield (
            f"Its {proof.what}",
            proof.link or "pushed by the carrier, printed after its statements",
        )


def _said(entry: BundleEntry) -> Iterator[tuple[str, str]]:
    """Yield the carrier's words and code; the code also in English, by its public
    list and as it was read.
    """
    if said := carriers_words(entry):
        yield "Its words", f"“{said}”"
    if entry.code:
        meaning = code_meaning(
            entry.document["carrier_id"], entry.raw, entry.part.get("description")
        )
        read = (
            f"read as “{spaced(entry.document['status'])}”"
            if entry.document.get("status")
            else "not known here"
        )
        yield (
            "Its code",
            f"{entry.code}: {f'“{meaning}” in its public list; ' if meaning else ''}{read}",
        )


def _other_services(last: str, events: Sequence[BundleEntry]) -> str:
    """Return other names of the carrier's service: a parcel may change service on its way."""
    named = {
        service_key(service): service
        for entry in events
        if (service := entry.document.get("service"))
    }
    others = [service for key, service in sorted(named.items()) if key != service_key(last)]
    return f", as last stated; also stated: {'; '.join(others)}" if others else ""


def _at(entry: BundleEntry) -> str:
    return f" at {entry.place}" if entry.place else ""


def _stated(statement: MerchantStatement) -> Iterator[tuple[str, str]]:
    if order := statement.order:
        placed = f"of {order.placed_on.day} {order.placed_on:%b %Y}" if order.placed_on else None
        yield (
            "Order",
            ", ".join(filter(None, (" ".join(filter(None, (order.number, placed))), order.amount))),
        )
        if order.description:
            yield "Goods", order.description
    if customer := statement.customer:
        yield (
            "Customer",
            _joined(customer.name, customer.email, customer.phone, customer.ip_address),
        )
    if ship_to := statement.ship_to:
        yield "Ship to", _joined(ship_to.name, ship_to.address)


def _joined(*parts: str | None) -> str:
    return ", ".join(filter(None, parts))


def _knowledge(
    bundle: Mapping[str, Any], events: Sequence[BundleEntry], milestones: Milestones
) -> Iterator[str]:
    received = sorted(entry.document["received_at"] for entry in events)
    messages = len({entry.document["message_id"] for entry in events})
    span = (
        f"on {utc(received[0])}"
        if received[0] == received[-1]
        else f"from {utc(received[0])} to {utc(received[-1])}"
    )
    known = "" if milestones.delivery is None else " " + _delivery_known(milestones.delivery)
    yield (
        f"{carrier_name(bundle['shipment']['carrier_id'])} made {counted(len(events), 'statement')}"
        f" in {counted(messages, 'message')}, received {span}, and stored byte for byte.{known} All"
        f" statements follow on the next page. {words.SEALED}"
    )
    if stamp := bundle["log"].get("stamp"):
        yield (
            f"An independent authority, {stamp['authority']}, time-stamped the log on"
            f" {utc(stamp['stamped_at'])}."
        )


def _delivery_known(delivery: BundleEntry) -> str:
    document = delivery.document
    message = f"Its statement of the delivery came on {utc(document['received_at'])}"
    later = datetime.fromisoformat(document["received_at"]) - delivery.at
    if (
        # a span from a day or a guessed zone would look exact
        document["time_precision"] == "day"
        or document["tz_source"] in {"received", "assumed_utc"}
        or later < timedelta(0)
    ):
        return f"{message}, and is entry {delivery.index} of the log."
    return (
        f"{message}, {duration(later.total_seconds())} after it happened, and is entry"
        f" {delivery.index} of the log."
    )


def _check(bundle: Mapping[str, Any]) -> Iterator[str]:
    """Yield how to check it, in the foot of the page."""
    head = read_checkpoint(bundle["log"]["checkpoint"])
    yield words.CHECK
    yield f"Log {head.origin}, {head.size:,} entries, sealed {utc(bundle['log']['sealed_at'])}"
    yield f"Root of the log: {head.root.hex()}"
