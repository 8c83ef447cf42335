"""Entries: the seven kinds of leaves of the log, as canonical bytes and leaf hash. Pure.

Carriers' statements (event, conflict), our conclusion (transition), the list of subscriptions to
notify (fanout), its outcome (attempt), the service's own observation (observation), an operator's
action (action). `FORMAT` is bound into each leaf; a changed shape needs a new number, and old
entries keep theirs. So is the epoch of the log in which the entry was recorded: the first is 1,
which is not written, and each fork of the log starts the next.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final
from uuid import UUID

from events.entry.canonical_json import canonical_bytes
from events.event import Event, EventPlace, Personal, Raw, value

FORMAT: Final = 1
NO_PREVIOUS: Final = bytes(32)
FIRST_EPOCH: Final = 1


class EntryName(StrEnum):
    """The kinds of entries of the log, in the order in which a batch has them."""

    EVENT = "event"
    CONFLICT = "conflict"
    TRANSITION = "transition"
    FANOUT = "fanout"
    ATTEMPT = "attempt"
    OBSERVATION = "observation"
    ACTION = "action"


@value(frozen=True, slots=True)
class Leaf:
    """An entry as the tree sees it."""

    canonical: bytes
    leaf_hash: bytes


def leaf(document: Mapping[str, Any], *, epoch: int) -> Leaf:
    """Compute `SHA-256(0x00 + canonical bytes)`, the leaf hash of RFC 6962.

    Fields without a value are left out, and so is the first epoch.
    """
    # left out, not null: a field added later then leaves the bytes of old entries as they are
    bound = {name: value for name, value in document.items() if value is not None}
    if epoch != FIRST_EPOCH:
        bound["epoch"] = epoch
    canonical = canonical_bytes(bound)
    return Leaf(canonical, leaf_hash_of(canonical))


def leaf_hash_of(canonical: bytes) -> bytes:
    return hashlib.sha256(b"\x00" + canonical).digest()


def _head(name: EntryName, recorded_at: datetime) -> dict[str, Any]:
    return {"format": FORMAT, "entry": name.value, "recorded_at": rfc3339(recorded_at)}


@value(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Origin of an event: the message, and the code that read it.

    `bound` is its part of an entry, made once a message.
    """

    message_id: UUID
    body_commitment: bytes
    received_at: datetime
    normalizer: str
    normalizer_version: str
    notify: bool = True
    """False: its changes are sent to no subscription, as asked for when it was submitted."""
    bound: Mapping[str, Any] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "bound", _source(self))


def rfc3339(instant: datetime) -> str:
    """Format an instant in UTC, with microseconds where there are any."""
    return _isoformat(instant if instant.tzinfo is UTC else instant.astimezone(UTC))


@lru_cache(maxsize=1024)
def _isoformat(instant: datetime) -> str:
    """Format an instant; cached, because a batch has few distinct times.

    Only UTC: elsewhere the two instants of a repeated hour are equal.
    """
    return instant.isoformat()


def offset_seconds(instant: datetime) -> int:
    offset = instant.utcoffset()
    return 0 if offset is None else round(offset.total_seconds())


def event_document(
    event: Event,
    *,
    source: Provenance,
    shipment_id: UUID,
    version: int,
    recorded_at: datetime,
    previous_hash: bytes,
    part_commitment: bytes | None,
    signer_digest: bytes | None,
) -> dict[str, Any]:
    """Build the bound fields of an event. Read back by the API, the fold and the verifier."""
    return {
        **_head(EntryName.EVENT, recorded_at),
        "shipment_id": str(shipment_id),
        "version": version,
        "previous_hash": previous_hash.hex(),
        **_statement(event),
        **source.bound,
        "part_commitment": part_commitment.hex() if part_commitment else None,
        "signer_digest": signer_digest.hex() if signer_digest else None,
    }


def conflict_document(
    event: Event,
    *,
    source: Provenance,
    shipment_id: UUID,
    claimed_shipment_id: UUID,
    recorded_at: datetime,
    facts_digest: bytes,
    part_commitment: bytes | None,
) -> dict[str, Any]:
    """Build a statement that contradicts the event of the same id.

    `shipment_id` is the holder of that event.
    """
    return {
        **_head(EntryName.CONFLICT, recorded_at),
        "shipment_id": str(shipment_id),
        "claimed_shipment_id": str(claimed_shipment_id),
        "facts_digest": facts_digest.hex(),
        **_statement(event),
        **source.bound,
        "part_commitment": part_commitment.hex() if part_commitment else None,
    }


def _statement(event: Event) -> dict[str, Any]:
    return {
        "carrier_id": event.carrier_id,
        "event_id": event.event_id,
        "tracking_number": event.tracking_number,
        "discriminator": event.discriminator,
        # `str` of a word is its value, and faster
        "kind": str(event.kind),
        "occurred_at": event.occurred_at.isoformat(),
        "tz_source": str(event.tz_source),
        "time_precision": str(event.time_precision),
        "time_flag": event.time_flag,
        "status": str(event.status) if event.status else None,
        "reason": str(event.reason) if event.reason else None,
        "by_category": event.by_category,
        "carrier_code": event.carrier_code,
        "raw": raw_document(event),
        "location": place_document(event.location),
        "piece": event.piece,
        "estimated_delivery": event.estimated_delivery,
        "service": event.service,
        "parcel_carrier_id": event.parcel_carrier_id,
        "corrects": event.corrects,
        "anchor": event.anchor,
        "stamp": event.stamp,
    }


def _source(source: Provenance) -> dict[str, Any]:
    return {
        "message_id": str(source.message_id),
        "body_commitment": source.body_commitment.hex(),
        "received_at": rfc3339(source.received_at),
        "normalizer": source.normalizer,
        "normalizer_version": source.normalizer_version,
        # absent where it is true: entries of 0.1.0 keep their bytes
        "notify": None if source.notify else False,
    }


def raw_document(event: Event) -> dict[str, Any]:
    stated = {
        "time": event.occurred_at_raw,
        "zone": event.raw_zone,
        "wall": event.raw_wall,
        "text": event.raw_text,
    }
    return raw_words(event.raw) | {
        name: value for name, value in stated.items() if value is not None
    }


def raw_words(raw: Raw) -> dict[str, Any]:
    words = {
        "type": raw.type,
        "code": raw.code,
        "reason": raw.reason,
        "further": list(raw.further) or None,
    }
    return {name: value for name, value in words.items() if value is not None}


def read_raw(words: Mapping[str, Any]) -> Raw:
    return Raw(
        type=words.get("type"),
        code=words.get("code"),
        reason=words.get("reason"),
        further=tuple(words.get("further") or ()),
    )


def place_document(place: EventPlace) -> dict[str, Any]:
    """Build the place; unknown parts are left out.

    Only the beginning of the postcode: the whole of it belongs to the sealed part.
    """
    parts = {
        "city": place.city,
        "region": place.region,
        "postal_code": place.postal_code,
        "country": place.country,
        "facility": place.facility,
    }
    return {name: value for name, value in parts.items() if value is not None}


def part_bytes(personal: Personal) -> bytes:
    """Encode the personal part for commitment and sealing, without absent fields."""
    raw = personal.raw
    parts = {
        "description": personal.description,
        "signed_by": personal.signed_by,
        "delivery_address": personal.delivery_address,
        "postal_code": personal.postal_code,
        "facility": personal.facility,
        "raw": None if raw is None else raw_words(raw),
    }
    return canonical_bytes({name: value for name, value in parts.items() if value is not None})


def transition_document(
    *,
    shipment_id: UUID,
    sequence: int,
    from_status: str,
    to_status: str,
    event_id: str,
    worker: str,
    message_id: UUID,
    recorded_at: datetime,
) -> dict[str, Any]:
    return {
        **_head(EntryName.TRANSITION, recorded_at),
        "shipment_id": str(shipment_id),
        "sequence": sequence,
        "from": from_status,
        "to": to_status,
        "event_id": event_id,
        "worker": worker,
        "message_id": str(message_id),
    }


def fanout_document(
    *,
    shipment_id: UUID,
    sequence: int,
    event: bytes,
    from_status: str,
    to_status: str,
    subscriptions: Iterable[UUID],
    recorded_at: datetime,
    replayed: bool = False,
    kind: str | None = None,
) -> dict[str, Any]:
    """Build the list of subscriptions that a change goes to.

    `event`: the leaf hash of version `sequence`; `replayed`: they were notified before. The
    webhook-ids follow from the event and the subscriptions. Equal statuses: the change is an
    update. `kind`: the type of the notification where an observation is sent in place of a
    change: `event` is its leaf hash, and `sequence` negative.
    """
    return {
        **_head(EntryName.FANOUT, recorded_at),
        "shipment_id": str(shipment_id),
        "sequence": sequence,
        "event": event.hex(),
        "from": from_status,
        "to": to_status,
        # sorted: the same fan-out has the same bytes, whatever order the database gave
        "subscriptions": sorted(map(str, subscriptions)),
        "replayed": replayed or None,
        "type": kind,
    }


def try_document(
    *,
    number: int,
    started_at: datetime,
    duration_ms: int,
    outcome: str,
    status_code: int | None,
    body_commitment: bytes,
) -> dict[str, Any]:
    """Build a try at a notification, within its entry: request (by commitment), time and answer."""
    stated = {
        "number": number,
        "started_at": rfc3339(started_at),
        "duration_ms": duration_ms,
        "outcome": outcome,
        "status_code": status_code,
        "body_commitment": body_commitment.hex(),
    }
    return {name: value for name, value in stated.items() if value is not None}


def attempt_document(
    *,
    webhook_id: str,
    subscription_id: UUID,
    shipment_id: UUID,
    sequence: int,
    outcome: str,
    tries: Sequence[Mapping[str, Any]],
    gap: Mapping[str, int] | None,
    covers: Sequence[Mapping[str, Any]],
    recorded_at: datetime,
    part_commitment: bytes | None,
) -> dict[str, Any]:
    """Build the end of a notification, with all tries at it (`try_document`).

    `gap`: the gap that its body declares. `covers`: the notifications of the same shipment that
    end with it, each with its `sequence`, its own `gap` if any and, where it was tried, its
    `tries`.
    """
    return {
        **_head(EntryName.ATTEMPT, recorded_at),
        "webhook_id": webhook_id,
        "subscription_id": str(subscription_id),
        "shipment_id": str(shipment_id),
        "sequence": sequence,
        "outcome": outcome,
        "tries": list(tries),
        "gap": None if gap is None else dict(gap),
        "covers": list(covers) or None,
        "part_commitment": part_commitment.hex() if part_commitment else None,
    }


def observation_document(
    *,
    shipment_id: UUID,
    version: int,
    kind: str,
    since: datetime,
    details: Mapping[str, Any],
    recorded_at: datetime,
) -> dict[str, Any]:
    """Build an observation of a shipment that had `version` events: that it is overdue, or
    stalled, and since when.

    `details`: by which rule; text, integers, booleans.
    """
    return {
        **_head(EntryName.OBSERVATION, recorded_at),
        "shipment_id": str(shipment_id),
        "version": version,
        "kind": kind,
        "since": rfc3339(since),
        "details": dict(details),
    }


def action_document(
    *, actor: str, verb: str, target: str, details: Mapping[str, Any], recorded_at: datetime
) -> dict[str, Any]:
    """Build an operator's action: the verb, its target, and its parameters (`why` among them)."""
    return {
        **_head(EntryName.ACTION, recorded_at),
        "actor": actor,
        "verb": verb,
        "target": target,
        "details": dict(details),
    }
