"""Ids of shipments and events, and digests of the facts behind a carrier's own event id.

The recipes are final: a changed recipe would append the whole history again. Everything is a
function of the clear part in the log and of a keyed digest; no status enters an id.
"""

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Final
from uuid import UUID

from events.clear_part import TEXT, Digest, Split, is_sentence, split
from events.errors import Cause, UnreadableMessageError
from events.event import NOT_PERSONAL, Event, Numbered, Personal, Raw, Reading
from events.identity.recipe import (
    CODE_PARTS,
    DERIVED,
    PLACE_PARTS,
    Recipe,
    Stated,
    canonical_number,
    codes_of,
    derived_id,
    names_of,
    needs_text,
    place_of,
    stated_by,
    time_of,
)
from events.identity.recipes import discriminator_of, number_of, recipe_of
from events.parsing.service_name import service_name
from events.parsing.times import SHIFTED
from events.spelling import normalize_number, short, spelled

NAMES_BYTES_MAX: Final = 2000
"""Bytes of number, discriminator, native id, codes and place together: they become keys in the
database, which bounds its keys.
"""

TEXT_DIGEST_BYTES: Final = 16
FACTS_FORMAT: Final = b"\x01"
PARTS_BYTES: Final = (8, 8, *(4 for _ in PLACE_PARTS))
"""Bytes of core, time and each part of the place."""

_SEPARATOR: Final = "\x1f"
ENRICHMENT: Final = "e1-"
_OURS: Final = ("c1-", DERIVED, ENRICHMENT)


@lru_cache(maxsize=4096)
def shipment_id(carrier_id: str, number: str, discriminator: str) -> UUID:
    """Derive the id of the shipment; `number` in any spelling."""
    return UUID(
        bytes=hashlib.sha256(
            _joined("s1", carrier_id, normalize_number(number), discriminator)
        ).digest()[:16]
    )


@lru_cache(maxsize=4096)
def numbered(carrier_id: str, printed: str, discriminator: str = "") -> Numbered:
    """Derive number and shipment from a printed number.

    Cached: most messages repeat it in each event.
    """
    number = number_of(carrier_id, printed)
    return Numbered(printed, number, shipment_id(carrier_id, number, discriminator))


def identify(
    reading: Reading,
    *,
    carrier_id: str,
    digest: Digest,
    allow_unnumbered: bool = False,
    with_aliases: bool = True,
) -> Event:
    """Derive the event of a reading.

    `digest` is the carrier's, for texts: of a scan without a code, and in the places of codes.

    `with_aliases` False for an id that the sender itself chose: no other envelope brings the event.

    Raises UnreadableMessageError: `no_tracking_number` (with `allow_unnumbered` the
    event's number is empty instead, for reading without a log) or `too_complex` (names
    longer than NAMES_BYTES_MAX).
    """
    time, printed_number, recipe = (
        reading.time,
        reading.tracking_number or "",
        recipe_of(carrier_id),
    )
    number = canonical_number(recipe, printed_number)
    if not number and not allow_unnumbered:
        raise UnreadableMessageError(
            Cause.NO_TRACKING_NUMBER, "no field holds the tracking number of an event"
        )
    clear = split(reading.raw, reading.place, carrier_id=carrier_id, digest=digest)
    aliases_of = recipe.also if with_aliases else ()
    stated = Stated(
        carrier_id=carrier_id,
        number=number,
        discriminator=discriminator_of(carrier_id, reading.discriminator),
        piece=reading.piece,
        raw=clear.raw,
        place=clear.place,
        occurred_at=time.instant,
        tz_source=time.tz_source,
        wall=time.identity if time.flag == SHIFTED else None,
        text=_text(reading, ((recipe,) if reading.native_id is None else ()) + aliases_of, digest),
    )
    # what a carrier prints in front of it may be the consignee's postcode, but for an SSCC's two
    # zeros
    is_whole = normalize_number(printed_number) in (number, f"00{number}")
    tracking_number = printed_number.strip() if is_whole else number
    event_id = (
        _derived_id(recipe, stated)
        if reading.native_id is None
        else _native_id(reading, reading.native_id, number)
    )
    return Event(
        carrier_id=carrier_id,
        event_id=event_id,
        aliases=_aliases(aliases_of, stated, event_id) if aliases_of else (),
        tracking_number=tracking_number,
        discriminator=stated.discriminator,
        numbered=numbered(carrier_id, tracking_number, stated.discriminator),
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
        raw_wall=stated.wall,
        raw_text=stated.text
        if reading.native_id is None and needs_text(recipe, clear.raw)
        else None,
        location=clear.place,
        piece=reading.piece,
        by_category=reading.by_category,
        contradicted=reading.contradicted,
        time_flag=time.flag,
        estimated_delivery=reading.estimated_delivery,
        service=service_name(reading.service),
        parcel_carrier_id=reading.parcel_carrier_id,
        corrects=reading.corrects,
        stamp=reading.stamp,
        personal=_personal(reading, clear),
    )


@lru_cache(maxsize=8192)
def carrier_code(raw: Raw) -> str | None:
    """Join type, code and reason as printed by `/`; absent ones, and sentences that stand in
    their place, are left out.
    """
    if raw.type is None and raw.reason is None:
        return None if raw.code is None or is_sentence(raw.code) else raw.code
    return (
        "/".join(
            part
            for part in (raw.type, raw.code, raw.reason)
            if part is not None and not is_sentence(part)
        )
        or None
    )


def printed_code(raw: Raw) -> str | None:
    """Return the code like `carrier_code`, but with sentences."""
    return "/".join(part for part in (raw.type, raw.code, raw.reason) if part is not None) or None


def listed_prefix(raw_type: str | None, raw_code: str | None) -> str | None:
    """Return the prefix of the `carrier_code` of every event with a listed type and code."""
    return carrier_code(Raw(type=raw_type, code=None if raw_type == TEXT else raw_code))


def awaited_id(carrier_id: str, number: str) -> UUID:
    """Derive the id in the log of a number that has no events yet: no shipment has it."""
    return UUID(bytes=hashlib.sha256(_joined("w1", carrier_id, number)).digest()[:16])


def facts_digest(event: Event, digest: Digest) -> bytes:
    """Digest the facts that the carrier stated under an id of its own, part by part.

    Empty for a derived id, which is its facts. The parts are core, time, and those of the
    place; an absent part is zeros. The core is number, discriminator, piece and raw codes; time
    and place count as in the carrier's recipe. Never description, signer, ETA or status.
    """
    if event.event_id.startswith(_OURS):
        return b""
    recipe = recipe_of(event.carrier_id)
    return stated_facts(recipe, stated_by(event, recipe), digest)


def stated_facts(recipe: Recipe, stated: Stated, digest: Digest) -> bytes:
    """Digest the facts behind an id of the carrier's own."""
    core = _joined(
        "f1",
        "core",
        stated.number,
        stated.discriminator,
        stated.piece or "",
        *codes_of(recipe, stated.raw, CODE_PARTS),
    )
    counted = recipe.place or PLACE_PARTS
    named = zip(PLACE_PARTS, place_of(stated.place, PLACE_PARTS), strict=True)
    place = ((name, value if name in counted else "") for name, value in named)
    parts = (("time", time_of(recipe, stated)), *place)
    core_bytes, *sizes = PARTS_BYTES
    digests = (
        _part(name, value, size, digest) for (name, value), size in zip(parts, sizes, strict=True)
    )
    return FACTS_FORMAT + digest(core)[:core_bytes] + b"".join(digests)


def contradict(held: bytes, stated: bytes) -> bool:
    """Return whether facts differ in a part that both state; facts of another format, and those of
    derived ids, never contradict.
    """
    # another format: its parts lie elsewhere
    if held == stated or held[:1] != stated[:1]:
        return False
    at = len(FACTS_FORMAT)
    for size in PARTS_BYTES:
        ours, theirs = held[at : at + size], stated[at : at + size]
        # zeros: not stated. Only what both state can contradict
        if ours != theirs and any(ours) and any(theirs):
            return True
        at += size
    return False


def value_digest(*, shipment_id: UUID, field: str, value: str, stamp: str, digest: Digest) -> bytes:
    """Digest a value that a scan of the shipment carries; `stamp` is the carrier's, or empty."""
    return digest(_joined("e1", str(shipment_id), field, value, stamp))


def enrichment_id(*, anchor: str, value: bytes) -> str:
    """Derive the id of an `info` event for one value (its `value_digest`) of the event `anchor`."""
    return ENRICHMENT + short(hashlib.sha256(_joined("e1", anchor) + value).digest())


def correction_id(*, corrected: str, replaces: str, reading: str) -> str:
    """Derive the id of our own correction of the event `corrected`.

    `replaces` is the correction that it supersedes, or empty; `reading` is the canonical text
    of the event's new reading.
    """
    return "c1-" + short(hashlib.sha256(_joined("c1", corrected, replaces, reading)).digest())


def _aliases(recipes: Sequence[Recipe], stated: Stated, event_id: str) -> tuple[str, ...]:
    return tuple(
        dict.fromkeys(
            alias for recipe in recipes if (alias := _derived_id(recipe, stated)) != event_id
        )
    )


def _derived_id(recipe: Recipe, stated: Stated) -> str:
    names, time = names_of(recipe, stated)
    _refuse_long(names)
    return derived_id(names, time)


def _text(reading: Reading, recipes: Sequence[Recipe], digest: Digest) -> str | None:
    """Return the keyed digest of the text, where a recipe requires it."""
    for recipe in recipes:
        if needs_text(recipe, reading.raw):
            return text_digest(reading.description or "", digest)
    return None


def text_digest(text: str, digest: Digest) -> str:
    """Digest a text next to a code, or in place of a code."""
    return digest(spelled(text).encode("utf-8", "replace"))[:TEXT_DIGEST_BYTES].hex()


def _native_id(reading: Reading, native_id: str, number: str) -> str:
    raw = reading.raw
    _refuse_long(
        _SEPARATOR.join(
            (
                native_id,
                number,
                reading.discriminator,
                raw.type or "",
                raw.code or "",
                raw.reason or "",
            )
        )
    )
    # a carrier's id that looks like one of ours must not be taken for it
    name = f"n-{native_id}" if native_id.startswith(_OURS) else native_id
    return f"{name}@{number}" if reading.native_id_per_number else name


def _part(name: str, stated: str, size: int, digest: Digest) -> bytes:
    # keyed: a city or a time has too few values for a plain hash
    return digest(_joined("f1", name, stated))[:size] if stated else bytes(size)


def _personal(reading: Reading, clear: Split) -> Personal:
    place = clear.sealed_place
    found = Personal(
        description=reading.description,
        signed_by=reading.signed_by,
        delivery_address=reading.delivery_address,
        postal_code=None if place is None else place.postal_code,
        facility=None
        if place is None or place.facility == clear.place.facility
        else place.facility,
        raw=clear.sealed_raw,
    )
    return NOT_PERSONAL if found == NOT_PERSONAL else found


def _refuse_long(names: str) -> None:
    if len(names.encode("utf-8", "replace")) > NAMES_BYTES_MAX:
        raise UnreadableMessageError(
            Cause.TOO_COMPLEX,
            f"number, id, codes and place of an event hold more than {NAMES_BYTES_MAX} bytes",
        )


def _joined(*fields: str) -> bytes:
    # a separator that no printed text holds: two fields must not run into each other
    return _SEPARATOR.join(fields).encode("utf-8", "replace")


def webhook_id(subscription_id: UUID, leaf_hash: bytes) -> str:
    """Derive a notification's id from its subscription and the leaf hash of its event
    (migrations/functions/webhook_id.sql).
    """
    return "n1-" + hashlib.sha256(subscription_id.bytes + leaf_hash).hexdigest()[:32]
