"""What an entry's clear part gives again: whose event it is, its derived id, the facts behind an id of the carrier's, its aliases.

Computed by the recipes themselves, from nothing but the canonical document. What takes the digest key needs a master key; what follows from
a sealed value is counted as unchecked. What scans of one shipment, or of one place and code, have in common is computed once.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeAlias

from psycopg import Connection

from events.carriers import canonical
from events.clear_part import Digest
from events.crypto.keyring import Keyring
from events.crypto.sealing import MasterKeys, SealError
from events.event import EventPlace, Raw
from events.identity import ENRICHMENT, enrichment_id, shipment_id, stated_facts, value_digest
from events.recipe import (
    DERIVED,
    Recipe,
    Stated,
    canonical_number,
    derived_id,
    is_derived_id,
    joined_names,
    needs_text,
    shipment_names,
    shown_time,
    words_of,
)
from events.recipes import number_of, recipe_of
from statesvc.database.keyring_store import SQL as KEYRING
from statesvc.database.keyring_store import service_context
from statesvc.log.entry_columns import read_time
from statesvc.log.entry_documents import ConflictDocument, EventDocument, PlaceDocument, RawDocument, StatementDocument

Digests: TypeAlias = Callable[[str], Digest]
"""The digest of each carrier by its id."""

_CORRECTION: Final = "c1-"
_VERSIONS: Final = 2**31
FACTS: Final = "facts behind ids of the carriers' own: they take the digest key"
ESTIMATES: Final = "ids of estimates that scans carry: they take the digest key"
SIGNERS: Final = "ids of signers that scans carry, who are sealed"
CORRECTIONS: Final = "ids of our own corrections"
OTHER_ANCHORS: Final = "ids of values that came with another id of their scan"
TEXTS: Final = "aliases by a text that is sealed"


def read_digests(connection: Connection[Any], master: MasterKeys | None) -> Digests | None:
    """None: without a master key, or with one that does not open the digest key."""
    if master is None:
        return None
    found = {name: bytes(sealed) for name, sealed in connection.execute(KEYRING["read_keys"], binary=True)}
    try:
        keys = {name: master.unwrap(sealed, service_context(name)) for name, sealed in found.items()}
        return Keyring(master=master, digest_key=keys["digest"].key, inbox=keys["inbox"]).carrier_digest
    except (SealError, KeyError):
        return None


class EventIds(NamedTuple):
    """What an event's entry gives. `fault`: which field is not what follows from the others, and why."""

    carrier_id: str
    event_id: str
    shipment_id: str
    facts: bytes | None
    """Empty for an id of ours; None where they were not computed."""
    aliases: tuple[str, ...]
    fault: tuple[str, str] | None
    unchecked: tuple[str, ...]
    version: int


def event_ids(document: EventDocument, digests: Digests | None) -> EventIds:
    """Of an event. Raises ValueError for what is none."""
    event_id, carrier_id = document.event_id, document.carrier_id
    if not 0 < document.version < _VERSIONS:
        raise ValueError("no version of an event")
    unchecked: tuple[str, ...] = ()
    fault: tuple[str, str] | None = None
    facts: bytes | None = b""
    if not _is_whose(document, document.shipment_id):
        fault = "shipment_id", "is not the id of its carrier, number and discriminator"
    if event_id.startswith(DERIVED):
        if not _derives(document):
            fault = "event_id", "is not the one that follows from what the event states"
    elif event_id.startswith(ENRICHMENT):
        why, missing = _enrichment(document, digests)
        fault = fault or why
        unchecked = (missing,) if missing else ()
    elif event_id.startswith(_CORRECTION):
        unchecked = (CORRECTIONS,)
    elif digests is None:
        facts = None
        unchecked = (FACTS,)
    else:
        facts = _facts(document, digests)
    aliases: tuple[str, ...] = ()
    if recipe_of(carrier_id).also:
        aliases, unread = _aliases(document)
        unchecked += (TEXTS,) * unread
    return EventIds(carrier_id, event_id, document.shipment_id, facts, aliases, fault, unchecked, document.version)


def conflict_fault(document: ConflictDocument, digests: Digests | None) -> tuple[str, str] | None:
    """What a conflict states that does not follow from the rest of it. Raises ValueError for what is no conflict."""
    if not _is_whose(document, document.claimed_shipment_id):
        return "claimed_shipment_id", "is not the id of its carrier, number and discriminator"
    if digests is not None and _facts(document, digests).hex() != document.facts_digest:
        return "facts_digest", "is not that of what it states"
    return None


def _is_whose(document: StatementDocument, wanted: str) -> bool:
    return _shipment(document.carrier_id, document.tracking_number, document.discriminator) == wanted


@lru_cache(maxsize=4096)
def _shipment(carrier_id: str, tracking_number: str, discriminator: str) -> str:
    return str(shipment_id(carrier_id, number_of(carrier_id, tracking_number), discriminator))


@lru_cache(maxsize=4096)
def _shipment_names(carrier_id: str, which: int, tracking_number: str, discriminator: str) -> str:
    return shipment_names(carrier_id, canonical_number(_recipes(carrier_id)[which], tracking_number), discriminator)


@lru_cache(maxsize=16_384)
def _words(carrier_id: str, which: int, piece: str | None, raw: RawDocument, place: PlaceDocument) -> tuple[str, str]:
    return words_of(_recipes(carrier_id)[which], piece=piece, raw=_raw(raw), place=_place(place), text=raw.text)


@lru_cache(maxsize=1024)
def _recipes(carrier_id: str) -> tuple[Recipe, ...]:
    """The one in use, and then those of the aliases."""
    recipe = recipe_of(carrier_id)
    return (recipe, *recipe.also)


def _derives(document: StatementDocument) -> bool:
    """Whether its derived id is that of the carrier's recipe, or of one in use before."""
    return any(is_derived_id(document.event_id, *_names(document, which)) for which in range(len(_recipes(document.carrier_id))))


def _names(document: StatementDocument, which: int) -> tuple[str, str]:
    """The identity by one of the carrier's recipes, and the time in it."""
    carrier_id, raw = document.carrier_id, document.raw
    time = shown_time(_recipes(carrier_id)[which], read_time(document.occurred_at)[1], document.tz_source, raw.wall)
    words = _words(carrier_id, which, document.piece, raw, document.location)
    return joined_names(_shipment_names(carrier_id, which, document.tracking_number, document.discriminator), words, time), time


def _facts(document: StatementDocument, digests: Digests) -> bytes:
    recipe, raw = recipe_of(document.carrier_id), document.raw
    stated = Stated(
        carrier_id=document.carrier_id,
        number=canonical_number(recipe, document.tracking_number),
        discriminator=document.discriminator,
        piece=document.piece,
        raw=_raw(raw),
        place=_place(document.location),
        occurred_at=read_time(document.occurred_at)[1],
        tz_source=document.tz_source,
        wall=raw.wall,
        text=raw.text,
    )
    return stated_facts(recipe, stated, digests(document.carrier_id))


@lru_cache(maxsize=4096)
def _raw(raw: RawDocument) -> Raw:
    return Raw(type=raw.type, code=raw.code, reason=raw.reason, further=raw.further)


@lru_cache(maxsize=4096)
def _place(place: PlaceDocument) -> EventPlace:
    return EventPlace(city=place.city, region=place.region, country=place.country, facility=place.facility)


def _enrichment(document: EventDocument, digests: Digests | None) -> tuple[tuple[str, str] | None, str | None]:
    """A fault, or why it cannot be checked. An estimate stands in clear, a signer does not."""
    carrier_id, estimate = document.carrier_id, document.estimated_delivery
    if estimate is None:
        return None, SIGNERS
    if digests is None:
        return None, ESTIMATES
    value = value_digest(
        shipment_id=shipment_id(carrier_id, number_of(carrier_id, document.tracking_number), document.discriminator),
        field="estimated_delivery",
        value=estimate,
        stamp=document.stamp or "",
        digest=digests(carrier_id),
    )
    if document.anchor is None:
        raise ValueError("an estimate on its own has an anchor")
    derived = (derived_id(*_names(document, which)) for which in range(len(_recipes(carrier_id))))
    if any(enrichment_id(anchor=each, value=value) == document.event_id for each in (document.anchor, *derived)):
        return None, None
    if recipe_of(carrier_id).also:
        return None, OTHER_ANCHORS
    return ("event_id", "is not the one that follows from its anchor and its estimate"), None


def _aliases(document: EventDocument) -> tuple[tuple[str, ...], int]:
    """The further ids that a scan was given, and of how many that cannot be said."""
    is_scan = document.anchor is None and not document.event_id.startswith(_CORRECTION)
    # an id that the sender itself chose has none
    if not is_scan or document.normalizer == canonical.CARRIER_ID:
        return (), 0
    raw, further = document.raw, list(enumerate(_recipes(document.carrier_id)))[1:]
    known = [which for which, recipe in further if raw.text is not None or not needs_text(recipe, _raw(raw))]
    aliases = dict.fromkeys(derived_id(*_names(document, which)) for which in known)
    return tuple(each for each in aliases if each != document.event_id), len(further) - len(known)
