"""Ids of shipments and events.

The recipes are final: a changed recipe would append the whole history again. Everything is a
function of the clear part in the log and of a keyed digest; no status enters an id.
"""

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, Literal
from uuid import UUID

from events.clear_part import TEXT, Digest, Split, is_sentence, split
from events.errors import Cause, UnreadableMessageError
from events.event import NOT_PERSONAL, Enrichment, Event, Numbered, Personal, Raw, Reading
from events.identity.facts import SEPARATOR, joined, stated_facts
from events.identity.recipe import (
    DERIVED,
    Recipe,
    Stated,
    canonical_number,
    derived_id,
    names_of,
    needs_text,
)
from events.identity.recipes import discriminator_of, number_of, recipe_of
from events.parsing.service_name import service_name
from events.parsing.times import SHIFTED
from events.spelling import normalize_number, short, spelled

# Bytes of number, discriminator, native id, codes and place together: they become keys in the
# database, which bounds its keys.
NAMES_BYTES_MAX: Final = 2000

TEXT_DIGEST_BYTES: Final = 16
ENRICHMENT: Final = "e1-"
_OURS: Final = ("c1-", DERIVED, ENRICHMENT)


@lru_cache(maxsize=4096)
def shipment_id(carrier_id: str, number: str, discriminator: str) -> UUID:
    """Derive the id of the shipment; `number` in any spelling."""
    return UUID(
        bytes=hashlib.sha256(
            joined("s1", carrier_id, normalize_number(number), discriminator)
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
    aliases = _aliases(aliases_of, stated, event_id) if aliases_of else ()
    own = numbered(carrier_id, tracking_number, stated.discriminator)
    return Event(
        carrier_id=carrier_id,
        event_id=event_id,
        aliases=aliases,
        tracking_number=tracking_number,
        discriminator=stated.discriminator,
        numbered=own,
        facts_digest=b""
        if event_id.startswith(_OURS)
        # of the number as the log has it: what a recipe leaves out may be left out twice
        else stated_facts(
            recipe, stated._replace(number=canonical_number(recipe, tracking_number)), digest
        ),
        parcel_id=_parcel_id(reading.parcel_carrier_id or carrier_id, carrier_id, own, stated),
        enrichments=_enrichments(reading, own.shipment_id, (event_id, *aliases), digest),
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


def _parcel_id(parcels: str, carrier_id: str, own: Numbered, stated: Stated) -> UUID | None:
    """Return the id of the shipment without discriminator of the parcel's carrier `parcels`.

    An aggregator names that carrier. None: the shipment is the parcel.
    """
    if parcels == carrier_id and not stated.discriminator:
        return None
    return numbered(parcels, own.printed).shipment_id


def _enrichments(
    reading: Reading, shipment_id: UUID, event_ids: Sequence[str], digest: Digest
) -> tuple[Enrichment, ...]:
    if reading.signed_by is None and reading.estimated_delivery is None:
        return ()
    carried: tuple[tuple[Literal["signed_by", "estimated_delivery"], str | None], ...] = (
        ("signed_by", reading.signed_by),
        ("estimated_delivery", reading.estimated_delivery),
    )
    found = [
        (
            name,
            value_digest(
                shipment_id=shipment_id,
                field=name,
                value=value,
                stamp=reading.stamp,
                digest=digest,
            ),
        )
        for name, value in carried
        if value is not None
    ]
    return tuple(
        Enrichment(
            field=name,
            digest=value,
            event_ids=tuple(enrichment_id(anchor=each, value=value) for each in event_ids),
        )
        for name, value in found
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
    return UUID(bytes=hashlib.sha256(joined("w1", carrier_id, number)).digest()[:16])


def value_digest(*, shipment_id: UUID, field: str, value: str, stamp: str, digest: Digest) -> bytes:
    """Digest a value that a scan of the shipment carries; `stamp` is the carrier's, or empty."""
    return digest(joined("e1", str(shipment_id), field, value, stamp))


def enrichment_id(*, anchor: str, value: bytes) -> str:
    """Derive the id of an `info` event for one value (its `value_digest`) of the event `anchor`."""
    return ENRICHMENT + short(hashlib.sha256(joined("e1", anchor) + value).digest())


def correction_id(*, corrected: str, replaces: str, reading: str) -> str:
    """Derive the id of our own correction of the event `corrected`.

    `replaces` is the correction that it supersedes, or empty; `reading` is the canonical text
    of the event's new reading.
    """
    return "c1-" + short(hashlib.sha256(joined("c1", corrected, replaces, reading)).digest())


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
        SEPARATOR.join(
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


def webhook_id(subscription_id: UUID, leaf_hash: bytes) -> str:
    """Derive a notification's id from its subscription and the leaf hash of its event
    (migrations/functions/webhook_id.sql).
    """
    return "n1-" + hashlib.sha256(subscription_id.bytes + leaf_hash).hexdigest()[:32]
