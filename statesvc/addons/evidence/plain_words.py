"""Numbers and our own words as people write them. Pure."""

from statesvc.addons.evidence.bundle_entry import BundleEntry
from statesvc.shipments.plain_names import spaced


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def carriers_words(entry: BundleEntry) -> str:
    """Return the carrier's text without its layout; empty: none, or hidden from this reader."""
    return " ".join((entry.part.get("description") or "").split())


def words_of(entry: BundleEntry) -> str:
    """Return the status of a statement, and the carrier's words."""
    document = entry.document
    status = spaced(document["status"]) if document.get("status") else spaced(document["kind"])
    return ": ".join(filter(None, (status, carriers_words(entry))))
