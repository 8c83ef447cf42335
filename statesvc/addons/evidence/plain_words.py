"""Numbers and our own words as people write them. Pure."""

from statesvc.addons.evidence.bundle_entry import BundleEntry
from statesvc.shipments.plain_names import spaced


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def carriers_words(entry: BundleEntry) -> str:
    """Return what the carrier wrote, without the layout of its own page; empty where it wrote nothing, or this reader may not see it."""
    return " ".join((entry.part.get("description") or "").split())


def words_of(entry: BundleEntry) -> str:
    """Return what a statement says: the status that it was read as, and the carrier's words."""
    document = entry.document
    status = spaced(document["status"]) if document.get("status") else spaced(document["kind"])
    return ": ".join(filter(None, (status, carriers_words(entry))))
