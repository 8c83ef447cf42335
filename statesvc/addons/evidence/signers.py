"""The signer of the delivery that counts, and other names. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from events.spelling import spelled
from statesvc.addons.evidence.bundle_entry import BundleEntry, Milestones, first_personal
from statesvc.addons.evidence.plain_words import carriers_words


def signer_of(
    shipment: Mapping[str, Any], events: Sequence[BundleEntry], milestones: Milestones
) -> str | None:
    signer: str | None = shipment.get("signed_by") or first_personal(
        _standing(events, milestones), "signed_by"
    )
    return signer


def other_signers(
    shipment: Mapping[str, Any], events: Sequence[BundleEntry], milestones: Milestones
) -> Iterator[BundleEntry]:
    """Yield the first statement that names each further signer."""
    named = {spelled(signer_of(shipment, events, milestones) or "")}
    for entry in _standing(events, milestones):
        signer = spelled(entry.part.get("signed_by") or "")
        if signer and signer not in named:
            named.add(signer)
            yield entry


def why_unsigned(events: Sequence[BundleEntry], milestones: Milestones) -> str:
    if hidden := next((entry.hidden for entry in events if entry.hidden), None):
        return hidden
    if milestones.corrected and (named := first_personal(events, "signed_by")):
        return (
            f"nobody, for a delivery that still stands; {named} was named for the one that does not"
        )
    is_in_words = milestones.delivery is not None and carriers_words(milestones.delivery)
    return (
        "not in a field of its own; see the carrier’s words"
        if is_in_words
        else "not stated by the carrier"
    )


def _standing(events: Sequence[BundleEntry], milestones: Milestones) -> list[BundleEntry]:
    """Return the statements without deliveries that no longer count, and their enrichments."""
    withdrawn = {corrected.entry.document["event_id"] for corrected in milestones.corrected}
    return [
        entry
        for entry in events
        if withdrawn.isdisjoint((entry.document["event_id"], entry.document.get("anchor")))
    ]
