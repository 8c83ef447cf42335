"""Derivation of ids from an entry's clear part: shipment, derived id, native facts, aliases.

Computed by the recipes themselves from the canonical document alone. Digests need a master key; ids
of sealed values are counted as unchecked. Values shared by scans of a shipment, or of a place and
code, are computed once.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeAlias
from uuid import UUID

from psycopg import Connection

from events.carriers import canonical
from events.clear_part import Digest
from events.crypto.keyring import Keyring
from events.crypto.sealing import MasterKeys, SealError
from events.event import EventPlace, Raw
from events.identity.facts import stated_facts
from events.identity.ids import ENRICHMENT, enrichment_id, numbered, value_digest
from events.identity.recipe import (
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
from events.identity.recipes import recipe_of
from statesvc.database.keyring_store import SQL as KEYRING
from statesvc.database.keyring_store import service_context
from statesvc.log.entry_documents import (
    ConflictDocument,
    EventDocument,
    PlaceDocument,
    RawDocument,
    StatementDocument,
)
from statesvc.log.entry_kinds import read_time

# The digest of each carrier by its id.
Digests: TypeAlias = Callable[[str], Digest]

_CORRECTION: Final = "c1-"
FACTS: Final = "facts behind ids of the carriers' own: they take the digest key"
ESTIMATES: Final = "ids of estimates that scans carry: they take the digest key"
SIGNERS: Final = "ids of signers that scans carry, who are sealed"
CORRECTIONS: Final = "ids of our own corrections"
OTHER_ANCHORS: Final = "ids of values that came with another id of their scan"
TEXTS: Final = "aliases by a text that is sealed"


def read_digests(connection: Connection[Any], master: MasterKeys | None) -> Digests | None:
    """Read the digests; None: no master key, or one that does not open the digest key."""
    if master is None:
        return None
    found = {
        name: bytes(sealed)
        for name, sealed in connection.execute(KEYRING["read_keys"], binary=True)
    }
    try:
        keys = {
            name: master.unwrap(sealed, service_context(name)) for name, sealed in found.items()
        }
        return Keyring(
            master=master, digest_key=keys["digest"].key, inbox=keys["inbox"]
        ).carrier_digest
    # a wrong master key is not the log's fault: what takes the digest key counts as unchecked
    except (SealError, KeyError):
        return None


class EventIds(NamedTuple):
    """Values derived from an event's entry.

    `fault`: which field does not follow from the others, and why.
    """

    carrier_id: str
    event_id: str
    shipment_id: str
    facts: bytes | None
    """Empty for an id of ours; None where they were not computed."""
    aliases: tuple[str, ...]
    fault: tuple[str, str] | None
    unchecked: tuple[str, ...]


def event_ids(document: EventDocument, digests: Digests | None) -> EventIds:
    """Derive the ids of an event. Raises ValueError for other documents."""
    event_id, shipment = (
        document.event_id,
        _shipment(document.carrier_id, document.tracking_number, document.discriminator),
    )
    unchecked: tuple[str, ...] = ()
    fault: tuple[str, str] | None = None
    facts: bytes | None = b""
    if shipment.shipment_id != document.shipment_id:
        fault = "shipment_id", "is not the id of its carrier, number and discriminator"
    if event_id.startswith(DERIVED):
        if not _derives(document, shipment):
            fault = "event_id", "is not the one that follows from what the event states"
    elif event_id.startswith(ENRICHMENT):
        why, missing = _enrichment(document, shipment, digests)
        fault = fault or why
        unchecked = (missing,) if missing else ()
    # their ids hold the correction that they replace, which the entry does not name
    elif event_id.startswith(_CORRECTION):
        unchecked = (CORRECTIONS,)
    elif digests is None:
        facts = None
        unchecked = (FACTS,)
    else:
        facts = _facts(document, digests)
    aliases: tuple[str, ...] = ()
    if len(shipment.recipes) > 1:
        aliases, unread = _aliases(document, shipment)
        unchecked += (TEXTS,) * unread
    return EventIds(
        document.carrier_id,
        event_id,
        document.shipment_id,
        facts,
        aliases,
        fault,
        unchecked,
    )


def conflict_fault(document: ConflictDocument, digests: Digests | None) -> tuple[str, str] | None:
    """Return a conflict's inconsistency, if any. Raises ValueError for other documents."""
    shipment = _shipment(document.carrier_id, document.tracking_number, document.discriminator)
    if shipment.shipment_id != document.claimed_shipment_id:
        return "claimed_shipment_id", "is not the id of its carrier, number and discriminator"
    if digests is not None and _facts(document, digests).hex() != document.facts_digest:
        return "facts_digest", "is not that of what it states"
    return None


class _Shipment(NamedTuple):
    """Values that the scans of a shipment share."""

    shipment_id: str
    recipes: tuple[Recipe, ...]
    """Its carrier's: the current recipe, then those of the aliases."""
    names: tuple[str, ...]
    """The first part of its scans' identities, by each recipe."""


@lru_cache(maxsize=4096)
def _shipment(carrier_id: str, tracking_number: str, discriminator: str) -> _Shipment:
    recipe = recipe_of(carrier_id)
    recipes = (recipe, *recipe.also)
    names = (
        shipment_names(carrier_id, canonical_number(each, tracking_number), discriminator)
        for each in recipes
    )
    return _Shipment(
        str(numbered(carrier_id, tracking_number, discriminator).shipment_id),
        recipes,
        tuple(names),
    )


@lru_cache(maxsize=16_384)
def _words(
    carrier_id: str, which: int, piece: str | None, raw: RawDocument, place: PlaceDocument
) -> tuple[str, str]:
    recipe = recipe_of(carrier_id)
    return words_of(
        (recipe, *recipe.also)[which],
        piece=piece,
        raw=_raw(raw),
        place=_place(place),
        text=raw.text,
    )


def _derives(document: EventDocument, shipment: _Shipment) -> bool:
    """Return whether its derived id is by the carrier's present recipe or a former one."""
    for which in range(len(shipment.recipes)):
        names, time = _names(document, shipment, which)
        if is_derived_id(document.event_id, names, time):
            return True
    return False


def _names(document: EventDocument, shipment: _Shipment, which: int) -> tuple[str, str]:
    """Return the identity by one of the carrier's recipes, and the time in it."""
    raw, printed = document.raw, document.occurred_at
    wall = raw.wall
    # the wall clock stands at the beginning of the time as it is always written
    if wall is None and printed[4:17:3] == "--T::":
        wall = printed[:19].replace("-", "").replace(":", "")
    time = shown_time(shipment.recipes[which], read_time(printed)[1], document.tz_source, wall)
    return joined_names(
        shipment.names[which],
        _words(document.carrier_id, which, document.piece, raw, document.location),
        time,
    ), time


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
    return EventPlace(
        city=place.city, region=place.region, country=place.country, facility=place.facility
    )


def _enrichment(
    document: EventDocument, shipment: _Shipment, digests: Digests | None
) -> tuple[tuple[str, str] | None, str | None]:
    """Return a fault, or the reason why it cannot be checked.

    An estimate is clear, a signer sealed.
    """
    carrier_id, estimate = document.carrier_id, document.estimated_delivery
    if estimate is None:
        return None, SIGNERS
    if digests is None:
        return None, ESTIMATES
    value = value_digest(
        shipment_id=UUID(shipment.shipment_id),
        field="estimated_delivery",
        value=estimate,
        stamp=document.stamp or "",
        digest=digests(carrier_id),
    )
    if document.anchor is None:
        raise ValueError("an estimate on its own has an anchor")
    derived = (
        derived_id(*_names(document, shipment, which)) for which in range(len(shipment.recipes))
    )
    if any(
        enrichment_id(anchor=each, value=value) == document.event_id
        for each in (document.anchor, *derived)
    ):
        return None, None
    if len(shipment.recipes) > 1:
        return None, OTHER_ANCHORS
    return ("event_id", "is not the one that follows from its anchor and its estimate"), None


def _aliases(document: EventDocument, shipment: _Shipment) -> tuple[tuple[str, ...], int]:
    """Return a scan's further ids, and the number of those that cannot be checked."""
    is_scan = document.anchor is None and not document.event_id.startswith(_CORRECTION)
    # an id that the sender itself chose has none
    if not is_scan or document.normalizer == canonical.CARRIER_ID:
        return (), 0
    raw, further = document.raw, list(enumerate(shipment.recipes))[1:]
    known = [
        which
        for which, recipe in further
        if raw.text is not None or not needs_text(recipe, _raw(raw))
    ]
    aliases = dict.fromkeys(derived_id(*_names(document, shipment, which)) for which in known)
    return tuple(each for each in aliases if each != document.event_id), len(further) - len(known)
