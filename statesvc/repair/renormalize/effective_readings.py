"""Logged events, each with its effective reading: the end of its chain of our corrections. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from events.entry.canonical_json import canonical_bytes
from events.entry.kinds import read_raw
from events.event import Event, EventPlace, Raw
from events.identity.ids import numbered
from events.vocabulary import Kind, Reason, Status, TimePrecision, TzSource
from projections.correction import OWN_PREFIX

Document = Mapping[str, Any]

_WORDS: Final = {
    name: frozenset(word.value for word in words)
    for name, words in (
        ("kind", Kind),
        ("status", Status),
        ("reason", Reason),
        ("tz_source", TzSource),
        ("time_precision", TimePrecision),
    )
}
ENRICHMENT_PREFIX: Final = "e1-"


@dataclass(frozen=True, slots=True)
class Effect:
    """Part of a reading that a correction can change. `status` None: no change of status."""

    status: str | None = None
    reason: str | None = None
    by_category: bool = False
    estimated_delivery: str | None = None
    signer_digest: str | None = None

    @property
    def text(self) -> str:
        """Canonical, for the correction's id."""
        stated = {
            "status": self.status,
            "reason": self.reason,
            "by_category": self.by_category,
            "estimated_delivery": self.estimated_delivery,
            "signer_digest": self.signer_digest,
        }
        return canonical_bytes(stated).decode()


def effect_of(document: Document) -> Effect:
    return Effect(
        status=document.get("status"),
        reason=document.get("reason"),
        by_category=bool(document.get("by_category")),
        estimated_delivery=document.get("estimated_delivery"),
        signer_digest=document.get("signer_digest"),
    )


@dataclass(frozen=True, slots=True)
class EffectiveReading:
    """An event that a carrier's message caused, and the last of our corrections of it."""

    root: Document
    end: Document | None

    @property
    def effect(self) -> Effect:
        """The effect that holds. Signer and estimate are kept, unless the correction has others."""
        said = effect_of(self.root)
        if self.end is None:
            return said
        now = effect_of(self.end)
        return replace(
            now,
            estimated_delivery=now.estimated_delivery or said.estimated_delivery,
            signer_digest=now.signer_digest or said.signer_digest,
        )

    @property
    def is_enrichment(self) -> bool:
        """A value that a message carried without an event of its own."""
        return bool(self.root["event_id"].startswith(ENRICHMENT_PREFIX))


def effective_readings(history: Iterable[Document]) -> list[EffectiveReading]:
    """Return the events of a shipment that are not our own corrections."""
    roots: list[Document] = []
    successors: dict[str, list[Document]] = defaultdict(list)
    for document in history:
        if (
            document["event_id"].startswith(OWN_PREFIX)
            and document["kind"] == Kind.CORRECTION.value
        ):
            successors[document.get("anchor") or document.get("corrects") or ""].append(document)
        else:
            roots.append(document)
    return [EffectiveReading(root, _end(root, successors)) for root in roots]


def _end(root: Document, successors: Mapping[str, Sequence[Document]]) -> Document | None:
    """Return the end of the chain.

    Under the shipment's lock a link has a single successor, so a chain never forks.
    """
    end = None
    following = successors.get(root["event_id"])
    while following:
        end = following[-1]
        following = successors.get(end["event_id"])
    return end


def raw_of(document: Document) -> Raw:
    """Return the carrier's own words, as far as they stand in clear."""
    return read_raw(document["raw"])


def is_known(document: Document) -> bool:
    """Return whether this version knows all words of the event.

    A later version may have added some.
    """
    return all(
        document.get(name) is None or document[name] in words for name, words in _WORDS.items()
    )


def event_of(document: Document) -> Event:
    """Return a logged event without its personal part. Raises ValueError unless it `is_known`."""
    raw = document["raw"]
    reason = document.get("reason")
    carrier_id, printed = document["carrier_id"], document["tracking_number"]
    discriminator = document.get("discriminator") or ""
    status = document.get("status")
    return Event(
        carrier_id=carrier_id,
        event_id=document["event_id"],
        tracking_number=printed,
        discriminator=discriminator,
        numbered=numbered(carrier_id, printed, discriminator),
        # without facts and enrichments: it is only the base of our own correction, whose id is its
        # reading
        kind=Kind(document["kind"]),
        occurred_at=datetime.fromisoformat(document["occurred_at"]),
        occurred_at_raw=raw.get("time") or "",
        tz_source=TzSource(document["tz_source"]),
        time_precision=TimePrecision(document["time_precision"]),
        status=Status(status) if status else None,
        reason=Reason(reason) if reason else None,
        carrier_code=document.get("carrier_code"),
        raw=raw_of(document),
        raw_zone=raw.get("zone"),
        location=EventPlace(**(document.get("location") or {})),
        piece=document.get("piece"),
        by_category=bool(document.get("by_category")),
        time_flag=document.get("time_flag"),
        estimated_delivery=document.get("estimated_delivery"),
        corrects=document.get("corrects"),
        anchor=document.get("anchor"),
        stamp=document.get("stamp") or "",
    )
