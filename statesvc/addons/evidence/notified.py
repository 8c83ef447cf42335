"""Notifications in words: from a shop's own systems, hints of its customer's knowledge. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from statesvc.addons.evidence.bundle_entry import BundleEntry
from statesvc.delivery.outcome import AttemptOutcome, EndOutcome
from statesvc.http.views import counted
from statesvc.shipments.notification_trail import LoggedNotification, notifications_of
from statesvc.shipments.plain_names import spaced
from statesvc.shipments.printed_times import utc

_NAMED_MAX: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifiedLine:
    """A try at a notification, or the reason why there was none.

    `status`: the one that it reported.
    """

    index: int
    sort: str
    at: str
    receiver: str
    status: str
    answer: str
    webhook_id: str
    is_try: bool
    is_confirmed: bool


def notified_lines(bundle: Mapping[str, Any], entries: Sequence[BundleEntry]) -> list[NotifiedLine]:
    """Return each try, and each notification that was not tried or has not ended, in the order
    in which they were made.
    """
    return sorted(_lines(entries, receivers_of(bundle)), key=lambda line: (line.sort, line.index))


def receivers_of(bundle: Mapping[str, Any]) -> dict[str, str]:
    """Return the names of the subscriptions by id, or their hosts."""
    return {each["subscription_id"]: each["receiver"] for each in bundle["sent"]} | dict(
        bundle.get("receivers") or {}
    )


def notified_in_words(bundle: Mapping[str, Any], entries: Sequence[BundleEntry]) -> list[str]:
    """Return the first page's lines: the systems notified of the present state, and the others."""
    lines = notified_lines(bundle, entries)
    if not lines:
        silent = any(entry.document.get("notify") is False for entry in entries)
        return [
            "No system was notified by this service: "
            + (
                "its history was imported with notifications switched off."
                if silent
                else "there was no subscription to this parcel."
            )
        ]
    status = spaced(bundle["shipment"]["status"])
    # the present state matters in a dispute: who was told of earlier ones is in the list
    telling = [line for line in lines if line.status == status] or lines[-1:]
    confirmed = [line for line in telling if line.is_confirmed]
    shown = (confirmed or telling)[:_NAMED_MAX]
    said = [
        f"{line.receiver}, a subscriber’s system, was {'' if line.is_try else 'to be '}notified of"
        f" “{line.status}” on {line.at}: {line.answer}."
        for line in shown
    ]
    rest = len(lines) - len(shown)
    return [*said, f"{counted(rest, 'further line')} in the list."] if rest else said


def _lines(entries: Sequence[BundleEntry], names: Mapping[str, str]) -> Iterator[NotifiedLine]:
    fanouts, ends = (
        [(entry.document, entry) for entry in entries if entry.kind == kind]
        for kind in ("fanout", "attempt")
    )
    for key, one in notifications_of(fanouts, ends).items():
        receiver = names.get(key.subscription_id) or f"subscription {key.subscription_id}"
        status = spaced(one.kind.removeprefix("shipment.")) if one.kind else spaced(one.to_status)
        for each in one.tries:
            document = each.document
            yield NotifiedLine(
                index=each.entry.index,
                sort=document["started_at"],
                at=utc(document["started_at"]),
                receiver=receiver,
                status=status,
                answer=_answer(document),
                webhook_id=one.webhook_id,
                is_try=True,
                is_confirmed=document["outcome"] == AttemptOutcome.DELIVERED,
            )
        if why := _why_unsent(one):
            document, entry = one.fanouts[-1]
            at = document["recorded_at"]
            yield NotifiedLine(
                index=entry.index,
                sort=at,
                at=utc(at),
                receiver=receiver,
                status=status,
                answer=why,
                webhook_id=one.webhook_id,
                is_try=False,
                is_confirmed=False,
            )


def _why_unsent(one: LoggedNotification) -> str:
    if one.covered_by is not None:
        return f"left out: that of statement {one.covered_by} stood for it"
    if one.outcome is None:
        return "not ended yet"
    if one.outcome == EndOutcome.CANCELLED and not one.tries:
        return "not sent, it had happened longer ago than this receiver asked to be told"
    return "" if one.tries else f"{spaced(one.outcome)}, never attempted"


def _answer(document: Mapping[str, Any]) -> str:
    status, took = document.get("status_code"), document.get("duration_ms")
    confirmed = (
        "confirmed"
        if document["outcome"] == AttemptOutcome.DELIVERED
        else f"not confirmed ({spaced(document['outcome'])})"
    )
    answer = ", ".join(
        filter(
            None, (f"HTTP {status}" if status else "", f"{took:,} ms" if took is not None else "")
        )
    )
    attempt = f", attempt {document['number']}" if document["number"] > 1 else ""
    return confirmed + (f" ({answer})" if answer else "") + attempt
