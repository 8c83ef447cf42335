"""Names for what carriers say: shipment ids, event ids, and the digest of the facts behind an event id.

The recipes are final (design.md, section 4): a changed one would append the whole history again. Everything is a function of the
carrier's own words and of a keyed digest; nothing here reads a status or a UTC time.
"""

import hashlib
import re
import unicodedata
from functools import lru_cache
from typing import Final
from uuid import UUID

from events.clear_part import TEXT, Digest, Split, split
from events.errors import Cause, UnreadableMessageError
from events.event import NOT_PERSONAL, Event, EventPlace, Personal, Raw, Reading
from events.parsing.times import SHIFTED
from events.vocabulary import TzSource

NAMES_BYTES_MAX: Final = 2000
"""Of number, discriminator, native id, codes and place together: they become keys in the database, which bounds its keys."""

_SEPARATOR: Final = "\x1f"
_ALPHABET: Final = "abcdefghijklmnopqrstuvwxyz234567"
_PAIRS: Final = tuple(first + second for first in _ALPHABET for second in _ALPHABET)
_OURS: Final = ("c1-", "d1-", "e1-")
_IGNORED: Final = re.compile("[\\s\\-\u00ad\u180e\u200b-\u200f\u2010-\u2015\u202a-\u202e\u2060-\u2064\u2212\ufeff]")


@lru_cache(maxsize=4096)
def normalize_number(printed: str) -> str:
    """A tracking number as it is compared: NFKC, upper case, without white space, zero-width characters and hyphens."""
    if printed.isascii() and printed.isalnum():
        return printed.upper()
    number = _IGNORED.sub("", unicodedata.normalize("NFKC", printed).upper())
    return number if number == printed else normalize_number(number)


@lru_cache(maxsize=4096)
def shipment_id(carrier_id: str, number: str, discriminator: str) -> UUID:
    """The id of the shipment; `number` in any spelling."""
    return UUID(bytes=hashlib.sha256(_joined("s1", carrier_id, normalize_number(number), discriminator)).digest()[:16])


def identify(reading: Reading, *, carrier_id: str, digest: Digest, allow_unnumbered: bool = False) -> Event:
    """The event that a reading is. `digest` is used only for texts: of a scan without a code, and in the places of codes.

    Raises UnreadableMessageError: `no_tracking_number` (with `allow_unnumbered` the event's number is empty instead, for
    reading without a log) or `too_complex` (names longer than NAMES_BYTES_MAX).
    """
    raw, time, printed_number = reading.raw, reading.time, reading.tracking_number or ""
    number = normalize_number(printed_number)
    if not number and not allow_unnumbered:
        raise UnreadableMessageError(Cause.NO_TRACKING_NUMBER, "no field holds the tracking number of an event")
    if reading.native_id is not None:
        event_id = _native_id(reading, reading.native_id, number)
    else:
        event_id = _derived_id(reading, carrier_id, number, digest)
    clear = split(raw, reading.place, carrier_id=carrier_id, digest=digest)
    return Event(
        carrier_id=carrier_id,
        event_id=event_id,
        tracking_number=printed_number.strip(),
        discriminator=reading.discriminator,
        kind=reading.kind,
        occurred_at=time.instant,
        occurred_at_raw=time.printed,
        tz_source=time.tz_source,
        time_precision=time.precision,
        status=reading.status,
        reason=reading.reason,
        carrier_code=carrier_code(clear.raw),
        raw=clear.raw,
        raw_zone=time.zone,
        location=clear.place,
        piece=reading.piece,
        by_category=reading.by_category,
        time_flag=time.flag,
        estimated_delivery=reading.estimated_delivery,
        corrects=reading.corrects,
        stamp=reading.stamp,
        personal=_personal(reading, clear),
    )


def carrier_code(raw: Raw) -> str | None:
    """Type, code and reason as printed, joined by `/`; absent ones left out."""
    if raw.type is None and raw.reason is None:
        return raw.code
    return "/".join(part for part in (raw.type, raw.code, raw.reason) if part is not None) or None


def listed_prefix(raw_type: str | None, raw_code: str | None) -> str | None:
    """What the `carrier_code` of every event with a listed type and code begins with."""
    return carrier_code(Raw(type=raw_type, code=None if raw_type == TEXT else raw_code))


def facts_digest(event: Event, digest: Digest) -> bytes:
    """What the carrier stated, for comparison with another statement of the same event id.

    Number, discriminator, piece, raw type, code and reason, place, and the time as a wall clock, whatever its offset. A derived id is
    made of all these, so only statements with a native id can differ; there the further codes count as well. Never description,
    signer, ETA, status or UTC time.
    """
    raw = event.raw
    facts = (
        "f1",
        normalize_number(event.tracking_number),
        event.discriminator,
        event.piece or "",
        raw.type or "",
        raw.code or "",
        raw.reason or "",
        _wall_clock(event),
        place_key(event.location),
    )
    return digest(_joined(*facts) if event.event_id.startswith("d1-") else _joined(*facts, *raw.further))


def enrichment_id(*, shipment_id: UUID, anchor: str, field: str, value: str, stamp: str, digest: Digest) -> str:
    """The id of an `info` event that states one value of the event `anchor` on its own; `stamp` is the carrier's, or empty."""
    return "e1-" + _short(digest(_joined("e1", str(shipment_id), anchor, field, value, stamp)))


def correction_id(*, corrected: str, replaces: str, reading: str) -> str:
    """The id of our own correction of the event `corrected`; `replaces` is the correction that it takes the place of, or empty.

    `reading` is the canonical text of what the event now says.
    """
    return "c1-" + _short(hashlib.sha256(_joined("c1", corrected, replaces, reading)).digest())


@lru_cache(maxsize=4096)
def place_key(place: EventPlace) -> str:
    """The facility, else `postal|city|region|country`; spelled so that case, width and blanks do not matter."""
    if place.facility:
        return _spelled(place.facility)
    return "|".join(_spelled(part or "") for part in (place.postal_code, place.city, place.region, place.country))


def _derived_id(reading: Reading, carrier_id: str, number: str, digest: Digest) -> str:
    raw, time = reading.raw, reading.time.identity
    names = _joined(
        "d1",
        carrier_id,
        number,
        reading.discriminator or reading.piece or "",
        raw.type or "",
        raw.code or "",
        raw.reason or "",
        time,
        place_key(reading.place),
    )
    _refuse_long(names)
    if raw.code is None:
        names += f"{_SEPARATOR}{digest(_spelled(reading.description or '').encode('utf-8', 'replace')).hex()}".encode()
    return f"d1-{time[2:8] or '000000'}-{_short(hashlib.sha256(names).digest())}"


def _native_id(reading: Reading, native_id: str, number: str) -> str:
    raw = reading.raw
    _refuse_long(_joined(native_id, number, reading.discriminator, raw.type or "", raw.code or "", raw.reason or ""))
    name = f"n-{native_id}" if native_id.startswith(_OURS) else native_id
    return f"{name}@{number}" if reading.native_id_per_number else name


def _wall_clock(event: Event) -> str:
    """Empty for a scan without time; as printed where that clock showed no time that exists."""
    if event.tz_source is TzSource.RECEIVED:
        return ""
    return event.occurred_at_raw if event.time_flag == SHIFTED else event.occurred_at.replace(tzinfo=None).isoformat()


def _personal(reading: Reading, clear: Split) -> Personal:
    place = clear.sealed_place
    found = Personal(
        description=reading.description,
        signed_by=reading.signed_by,
        delivery_address=reading.delivery_address,
        postal_code=None if place is None else place.postal_code,
        facility=None if place is None or place.facility == clear.place.facility else place.facility,
        raw=clear.sealed_raw,
    )
    return found or NOT_PERSONAL


def _refuse_long(names: bytes) -> None:
    if len(names) > NAMES_BYTES_MAX:
        raise UnreadableMessageError(Cause.TOO_COMPLEX, f"number, id, codes and place of an event hold more than {NAMES_BYTES_MAX} bytes")


def _joined(*fields: str) -> bytes:
    return _SEPARATOR.join(fields).encode("utf-8", "replace")


def _short(digest: bytes) -> str:
    """The first 26 characters of lower-case base32, two characters (ten bits) at a time."""
    bits = int.from_bytes(digest[:17]) >> 6
    return "".join([_PAIRS[bits >> shift & 1023] for shift in range(120, -10, -10)])


def _spelled(printed: str) -> str:
    if not printed.isascii():
        printed = unicodedata.normalize("NFKC", printed)
    return " ".join(printed.casefold().split())
