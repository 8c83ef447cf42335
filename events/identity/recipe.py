"""Recipes: the parts of a carrier's statement that identify its scan. Pure and final.

Declared as data (`events.identity.recipes`). The same scan comes in several envelopes: a push and
an answer, two versions of an API, two languages, two offsets. A recipe names the parts that all of
them print alike, so the scan has the same id in each. Only the clear part of the leaf enters, so
that any holder of the log can compute an id again, and no id reveals sealed data; a text enters as
its keyed digest.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple

from events.clear_part import is_stand_in
from events.event import EventPlace, Raw
from events.spelling import is_short, normalize_number, short, spelled
from events.vocabulary import TimePrecision, TzSource

CodePart = Literal["type", "code", "reason", "further"]
PlacePart = Literal["city", "region", "country", "facility"]

DERIVED: Final = "d1-"
CODE_PARTS: Final[tuple[CodePart, ...]] = ("type", "code", "reason", "further")
PLACE_PARTS: Final[tuple[PlacePart, ...]] = ("city", "region", "country", "facility")

_SEPARATOR: Final = "\x1f"
_STATED_OFFSETS: Final = frozenset({TzSource.EXPLICIT, TzSource.PAIR})
_LENGTHS: Final = {TimePrecision.SECOND: 15, TimePrecision.MINUTE: 13, TimePrecision.DAY: 8}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Recipe:
    """The fields that all envelopes of a carrier print alike.

    A constant: compared and hashed by identity.
    """

    time: Literal["instant", "local"]
    """`instant`: in UTC, for a carrier that prints varying offsets.

    A scan without an offset counts by its wall clock. `local`: the wall clock as printed. No
    table of zones or places influences either.
    """
    precision: TimePrecision = TimePrecision.SECOND
    """The coarsest precision of all envelopes."""
    codes: tuple[CodePart, ...] = ("type", "code", "reason")
    place: tuple[PlacePart, ...] = ()
    """Empty where code and time distinguish enough.

    Two envelopes spell a place differently more often than a code.
    """
    piece: bool = False
    translates: bool = False
    """The carrier translates its texts: none of them distinguishes scans, not even where there is
    neither type nor code.
    """
    ignored_in_number: re.Pattern[str] | None = None
    """Text that some envelopes print in front of the number."""
    ignored_in_discriminator: re.Pattern[str] | None = None
    ignored_in_code: re.Pattern[str] | None = None
    also: tuple["Recipe", ...] = ()
    """The ids that these give are aliases: those of envelopes that print less, or of a recipe
    that was in use before.
    """


class Stated(NamedTuple):
    """The clear part of a statement, as far as a recipe may ask for it."""

    carrier_id: str
    number: str
    discriminator: str
    piece: str | None
    raw: Raw
    place: EventPlace
    occurred_at: datetime
    tz_source: TzSource
    wall: str | None = None
    """The wall clock as printed, where `occurred_at` has another."""
    text: str | None = None
    """The keyed digest of the text."""


def stated_in(document: Mapping[str, Any], recipe: Recipe) -> Stated:
    raw, place = document["raw"], document["location"]
    return Stated(
        carrier_id=document["carrier_id"],
        number=canonical_number(recipe, document["tracking_number"]),
        discriminator=document["discriminator"],
        piece=document.get("piece"),
        raw=Raw(
            type=raw.get("type"),
            code=raw.get("code"),
            reason=raw.get("reason"),
            further=tuple(raw.get("further", ())),
        ),
        place=EventPlace(**{part: place.get(part) for part in PLACE_PARTS}),
        occurred_at=datetime.fromisoformat(document["occurred_at"]),
        tz_source=TzSource(document["tz_source"]),
        wall=raw.get("wall"),
        text=raw.get("text"),
    )


def canonical_number(recipe: Recipe, printed: str) -> str:
    """Return the number in its normalised form, without parts that only some envelopes print."""
    number = normalize_number(printed)
    return (
        number
        if recipe.ignored_in_number is None
        else recipe.ignored_in_number.sub("", number, count=1)
    )


@lru_cache(maxsize=4096)
def canonical_discriminator(recipe: Recipe, printed: str) -> str:
    return (
        printed
        if recipe.ignored_in_discriminator is None
        else recipe.ignored_in_discriminator.sub("", printed, count=1)
    )


def needs_text(recipe: Recipe, raw: Raw) -> bool:
    """Return whether only its text distinguishes the scan."""
    if recipe.translates:
        return False
    return not (
        ("code" in recipe.codes and raw.code is not None)
        or ("type" in recipe.codes and raw.type is not None)
    )


def names_of(recipe: Recipe, stated: Stated) -> tuple[str, str]:
    """Return the identity of a scan without an id of the carrier's, as text, and the time in it."""
    time = time_of(recipe, stated)
    words = words_of(
        recipe, piece=stated.piece, raw=stated.raw, place=stated.place, text=stated.text
    )
    return joined_names(
        shipment_names(stated.carrier_id, stated.number, stated.discriminator), words, time
    ), time


def shipment_names(carrier_id: str, number: str, discriminator: str) -> str:
    return _SEPARATOR.join(("d1", carrier_id, number, discriminator))


def words_of(
    recipe: Recipe, *, piece: str | None, raw: Raw, place: EventPlace, text: str | None
) -> tuple[str, str]:
    """Return the parts of an identity before and after its time, which many scans share."""
    before = ((piece or "") if recipe.piece else "", *codes_of(recipe, raw, recipe.codes))
    after = (
        "",
        *place_of(place, recipe.place),
        *((text or "",) if needs_text(recipe, raw) else ()),
    )
    return _SEPARATOR.join(before), _SEPARATOR.join(after)


def joined_names(shipment: str, words: tuple[str, str], time: str) -> str:
    return f"{shipment}{_SEPARATOR}{words[0]}{_SEPARATOR}{time}{words[1]}"


def derived_id(names: str, time: str) -> str:
    """Derive the id.

    The date of the identity's own time comes first, so that keys that arrive together lie
    together in the index.
    """
    return f"{DERIVED}{time[2:8] or '000000'}-{short(hashlib.sha256(names.encode('utf-8', 'replace')).digest())}"


def is_derived_id(event_id: str, names: str, time: str) -> bool:
    """Return whether an id is `derived_id` of this; quicker than deriving it."""
    before = f"{DERIVED}{time[2:8] or '000000'}-"
    return event_id.startswith(before) and is_short(
        event_id[len(before) :], hashlib.sha256(names.encode("utf-8", "replace")).digest()
    )


def rederived_id(recipe: Recipe, document: Mapping[str, Any]) -> str:
    """Derive the id of the event that a canonical document states from that document alone."""
    return derived_id(*names_of(recipe, stated_in(document, recipe)))


@lru_cache(maxsize=8192)
def codes_of(recipe: Recipe, raw: Raw, parts: tuple[CodePart, ...]) -> tuple[str, ...]:
    """Return the codes that count, normalised; an absent code is empty."""
    found = (
        _code(recipe, raw.type) if "type" in parts else "",
        _code(recipe, raw.code) if "code" in parts else "",
        _code(recipe, raw.reason) if "reason" in parts else "",
    )
    return (
        (*found, "/".join(_code(recipe, code) for code in raw.further))
        if "further" in parts
        else found
    )


def _code(recipe: Recipe, printed: str | None) -> str:
    if printed is None or (recipe.translates and is_stand_in(printed)):
        return ""
    return spelled(
        printed
        if recipe.ignored_in_code is None
        else recipe.ignored_in_code.sub("", printed, count=1)
    )


def time_of(recipe: Recipe, stated: Stated) -> str:
    """Return `YYYYMMDDTHHMMSS` to the recipe's precision, with `Z` where it is an instant; midnight
    is the day alone; no time is empty.

    Envelopes print a scan of a day as its date or as midnight.
    """
    return shown_time(recipe, stated.occurred_at, stated.tz_source, stated.wall)


def shown_time(recipe: Recipe, occurred_at: datetime, tz_source: TzSource, wall: str | None) -> str:
    """Return `time_of` from the parts of a statement."""
    # a time that is ours would give each delivery of the scan another id
    if tz_source is TzSource.RECEIVED:
        return ""
    is_instant = recipe.time == "instant" and tz_source in _STATED_OFFSETS
    # an hour that the clock skipped was moved; envelopes agree on what is printed
    if wall is not None and not is_instant:
        shown = wall
    else:
        at = occurred_at.astimezone(UTC) if is_instant else occurred_at
        shown = f"{at.year * 10000 + at.month * 100 + at.day:08}T{at.hour * 10000 + at.minute * 100 + at.second:06}"
    shown = shown[: _LENGTHS[recipe.precision]]
    # midnight: one envelope prints the day, another its midnight
    if not shown[9:].strip("0"):
        shown = shown[:8]
    return f"{shown}Z" if is_instant else shown


@lru_cache(maxsize=8192)
def place_of(place: EventPlace, parts: tuple[PlacePart, ...]) -> tuple[str, ...]:
    """Return the parts of a place that count, spelled so that case, width and blanks do not
    matter.
    """
    return tuple(spelled(getattr(place, part) or "") for part in parts)
