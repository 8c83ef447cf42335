"""Objections to the first page's answer, and other facts to weigh: time, place, statement. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from projections.correction import OWN_PREFIX
from projections.lifecycle import Flag
from statesvc.addons.evidence.back_dated import back_dated_entries
from statesvc.addons.evidence.bundle_entry import (
    ERASED_TEXT,
    BundleEntry,
    CorrectedDelivery,
    Milestones,
    other_signers,
    words_of,
)
from statesvc.background.duration import duration
from statesvc.http.views import counted
from statesvc.shipments.plain_names import REMARKS, spaced
from statesvc.shipments.printed_times import days_between, stated_time, utc

_NAMED_MAX: Final = 3


def remarks_of(
    bundle: Mapping[str, Any],
    entries: Sequence[BundleEntry],
    milestones: Milestones,
) -> Iterator[str]:
    shipment = bundle["shipment"]
    by_flag = _scans_by_flag(entries, milestones)
    for corrected in milestones.corrected[:_NAMED_MAX]:
        yield _corrected(corrected)
    for name in shipment["flags"]:
        scans = by_flag.get(name, [])
        if name == Flag.CONTRADICTED and scans:
            yield _contradicted(scans, milestones)
        else:
            yield _sentence(REMARKS.get(name, spaced(name)) + _statements(scans))
    events = sorted(
        (entry for entry in entries if entry.kind == "event"),
        key=lambda entry: (entry.at, entry.index),
    )
    for entry in list(other_signers(shipment, events, milestones))[:_NAMED_MAX]:
        yield (
            f"The carrier also named another signer: {entry.part['signed_by']},"
            f" {stated_time(entry.document)} (statement {entry.number})."
        )
    if conflicts := sum(entry.kind == "conflict" for entry in entries):
        yield (
            f"{counted(conflicts, 'statement')} came under an id that the carrier had used before,"
            " with other facts. What came first counts; they are listed as contradictions."
        )
    for place, latest in back_dated_entries(
        bundle["entries"], [entry.document for entry in entries]
    ):
        says = f"entry {entries[place].index} says {utc(entries[place].document['recorded_at'])}"
        why = (
            f"what was recorded {utc(latest)} stands before it in the log: it was inserted with an"
            " old time, or a clock was wrong"
        )
        yield f"Back-dated: {says}, but {why}."
    if shipment["erased"]:
        yield f"Personal data: {ERASED_TEXT}."


def _scans_by_flag(
    entries: Sequence[BundleEntry], milestones: Milestones
) -> dict[str, list[BundleEntry]]:
    found: dict[str, list[BundleEntry]] = {}
    for entry in entries:
        for flag in (
            milestones.flags.get(entry.document["event_id"], ()) if entry.kind == "event" else ()
        ):
            found.setdefault(flag, []).append(entry)
    return found


def _contradicted(scans: Sequence[BundleEntry], milestones: Milestones) -> str:
    """Return which scan, when, where, and how long after the delivery."""
    said = []
    for scan in sorted(scans, key=lambda entry: entry.at)[:_NAMED_MAX]:
        after = ""
        if milestones.delivery is not None and scan.at > milestones.delivery.at:
            after = (
                f", {duration((scan.at - milestones.delivery.at).total_seconds())} after the"
                " delivery,"
            )
        where = f" in {scan.location['city']}" if scan.location.get("city") else ""
        said.append(
            f"On {stated_time(scan.document)}{after} the carrier also reported"
            f" “{words_of(scan)}”{where} (statement {scan.number})."
        )
    if len(scans) > _NAMED_MAX:
        said.append(
            f"Of this kind are {counted(len(scans) - _NAMED_MAX, 'further statement')}, marked in"
            " the list."
        )
    # a reader of a contradiction asks for this next
    if milestones.delivery is not None and not milestones.corrected:
        said.append("No later statement took the delivery back.")
    return " ".join(said)


def _corrected(corrected: CorrectedDelivery) -> str:
    correction = corrected.correction.document
    at = f"{stated_time(corrected.entry.document)} (statement {corrected.entry.number})"
    by = f"{utc(correction['received_at'])} (statement {corrected.correction.number})"
    # ours or the carrier's: a reading of ours that was wrong must not look like the carrier's
    # change of mind
    if correction["event_id"].startswith(OWN_PREFIX):
        reads = spaced(corrected.reads) if corrected.reads else "no scan"
        return (
            f"The carrier’s statement for {at} was first read here as a delivery; since {by} it is"
            f" read as: {reads}."
        )
    reads = f"corrected it to: {spaced(corrected.reads)}" if corrected.reads else "took it back"
    return f"The carrier reported a delivery for {at} and {reads}; that came on {by}."


def _statements(scans: Sequence[BundleEntry]) -> str:
    named = [
        f"statement {scan.number}, {stated_time(scan.document)}" for scan in scans[:_NAMED_MAX]
    ]
    return f" ({'; '.join(named)}{'; ...' if len(scans) > _NAMED_MAX else ''})" if named else ""


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def used_twice(bundle: Mapping[str, Any], events: Sequence[BundleEntry]) -> str:
    """Return the parcel's rank among those of its number; empty: it is the only one."""
    others = bundle.get("others") or ()
    if not others:
        return ""
    times = "twice" if len(others) == 1 else f"{len(others) + 1} times"
    named = bundle["shipment"]["discriminator"]
    spans = [
        f"the one that is {spaced(other['status'])}, last heard of on {utc(other['last_event_at'])}"
        for other in others
    ]
    own = days_between(events[0].at, events[-1].at)
    return (
        f"This number was used {times}; this is the parcel of"
        f" {own}{f', which the carrier calls {named}' if named else ''}. Not part of this document:"
        f" {'; '.join(spans)}."
    )
