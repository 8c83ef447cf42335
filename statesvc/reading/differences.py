"""Differences between two versions of a normalizer in a message, by event and field. Pure.

Events are matched by their id. A field that may name a person is compared and stored as a keyed
digest only, under the carrier's own key.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from events.clear_part import Digest
from events.crypto.keyring import DIGEST_BYTES, Keyring
from events.event import Event

VALUE_CHARS_MAX: Final = 500
# The difference of an event that only one version reads, or reads more often.
EVENT: Final = "event"


@dataclass(frozen=True, slots=True)
class Difference:
    """A field of an event.

    `event_id` None: the difference is about the message (`verdict`, `rejections`).
    """

    event_id: str | None
    field: str
    stable: str | None
    candidate: str | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome of a version for a message.

    `failure`: the reason for no events (a cause, and for a defect its place).
    """

    events: tuple[Event, ...] = ()
    rejections: int = 0
    failure: str | None = None


_PLAIN: Final[Mapping[str, Callable[[Event], object]]] = {
    "tracking_number": lambda event: event.tracking_number,
    "discriminator": lambda event: event.discriminator,
    "kind": lambda event: event.kind.value,
    "status": lambda event: event.status and event.status.value,
    "reason": lambda event: event.reason and event.reason.value,
    "by_category": lambda event: event.by_category,
    "occurred_at": lambda event: event.occurred_at.isoformat(),
    "occurred_at_raw": lambda event: event.occurred_at_raw,
    "tz_source": lambda event: event.tz_source.value,
    "time_precision": lambda event: event.time_precision.value,
    "time_flag": lambda event: event.time_flag,
    "raw_type": lambda event: event.raw.type,
    "raw_code": lambda event: event.raw.code,
    "raw_reason": lambda event: event.raw.reason,
    "raw_further": lambda event: "; ".join(event.raw.further) or None,
    "raw_zone": lambda event: event.raw_zone,
    "city": lambda event: event.location.city,
    "region": lambda event: event.location.region,
    "postal_area": lambda event: event.location.postal_code,
    "country": lambda event: event.location.country,
    "facility": lambda event: event.location.facility,
    "piece": lambda event: event.piece,
    "estimated_delivery": lambda event: event.estimated_delivery,
    "service": lambda event: event.service,
    "parcel_carrier_id": lambda event: event.parcel_carrier_id,
    "corrects": lambda event: event.corrects,
    "stamp": lambda event: event.stamp or None,
}
_PERSONAL: Final[Mapping[str, Callable[[Event], str | None]]] = {
    "description": lambda event: event.personal.description,
    "signed_by": lambda event: event.personal.signed_by,
    "delivery_address": lambda event: event.personal.delivery_address,
    "postal_code": lambda event: event.personal.postal_code,
}
FIELDS: Final = (*_PLAIN, *_PERSONAL)


def differences(stable: Outcome, candidate: Outcome, keyring: Keyring) -> list[Difference]:
    """Return every field in which they differ; empty where they agree."""
    if stable.failure is not None or candidate.failure is not None:
        if stable.failure == candidate.failure:
            return []
        return [Difference(None, "verdict", stable.failure or "read", candidate.failure or "read")]
    found = []
    if stable.rejections != candidate.rejections:
        found.append(
            Difference(None, "rejections", str(stable.rejections), str(candidate.rejections))
        )
    ours, theirs = _by_id(stable.events), _by_id(candidate.events)
    for event_id in dict.fromkeys((*ours, *theirs)):
        mine, other = ours.get(event_id, []), theirs.get(event_id, [])
        if len(mine) != len(other):
            found.append(Difference(event_id, EVENT, _times(len(mine)), _times(len(other))))
        for one, another in zip(mine, other, strict=False):
            if one != another:
                found += _fields(one, another, keyring)
    return found


def _by_id(events: Iterable[Event]) -> dict[str, list[Event]]:
    found: dict[str, list[Event]] = defaultdict(list)
    for event in events:
        found[event.event_id].append(event)
    return found


def _times(count: int) -> str | None:
    return f"said {count} times" if count > 1 else "said" if count else None


def _fields(stable: Event, candidate: Event, keyring: Keyring) -> Iterable[Difference]:
    digest = keyring.carrier_digest(stable.carrier_id)
    for name, value in _PLAIN.items():
        mine, other = value(stable), value(candidate)
        if mine != other:
            yield Difference(stable.event_id, name, _shown(mine), _shown(other))
    for name, text in _PERSONAL.items():
        mine, other = text(stable), text(candidate)
        if mine != other:
            yield Difference(
                stable.event_id, name, _digest(name, mine, digest), _digest(name, other, digest)
            )


def _shown(value: object) -> str | None:
    return None if value is None else str(value).replace("\x00", "")[:VALUE_CHARS_MAX]


def _digest(name: str, value: str | None, digest: Digest) -> str | None:
    if value is None:
        return None
    return (
        "digest:"
        + digest(f"difference\x1f{name}\x1f{value}".encode("utf-8", "replace"))[:DIGEST_BYTES].hex()
    )
