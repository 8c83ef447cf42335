"""Attribution of an event's fields to the values of the body that gave them.

Each value is altered, the body normalized again, and compared.
What no single value gave, several said: then those that print it are altered together. So nothing here knows any carrier, and nothing can
drift from what a normalizer does. A value that changes nothing was ignored. Pure.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Final

from events.alterable import AlterableDocument, BodyValue, Value, alterable
from events.carriers.carrier import Normalizer
from events.errors import UnreadableMessageError
from events.event import Event, Reading

LEAVES_MAX: Final = 2000
BYTES_MAX: Final = 128 * 1024 * 1024
"""Bytes that are normalized for one explanation, some ten seconds; what is left is said to be untried."""
READINGS_CACHED_MAX: Final = 10_000
ALTERATIONS_MAX: Final = 9
SIMILAR_MAX: Final = 64

WORD: Final = "Zq9"
"""Before and behind a text: so it is in no table of codes, and no time."""

REQUIRED: Final = ("number", "code", "status", "time")
"""Fields that every event has from somewhere."""
TOGETHER_MAX: Final = 64
EXISTENCE: Final = "event"
FIELDS: Final[Mapping[str, Callable[[Reading, Event], object]]] = {
    "number": lambda reading, _: reading.tracking_number,
    "piece": lambda reading, _: (reading.piece, reading.discriminator),
    "code": lambda reading, _: (
        reading.raw.type,
        reading.raw.code,
        reading.raw.reason,
        reading.raw.further,
    ),
    "status": lambda reading, _: (
        reading.kind,
        reading.status,
        reading.reason,
        reading.by_category,
    ),
    "time": lambda reading, _: reading.time.printed or reading.time.instant,
    "zone": lambda reading, _: (
        reading.time.tz_source,
        reading.time.zone,
        reading.time.instant.utcoffset(),
        reading.time.flag,
    ),
    "precision": lambda reading, _: reading.time.precision,
    "place": lambda reading, _: reading.place,
    "estimated_delivery": lambda reading, _: (reading.estimated_delivery, reading.stamp),
    "service": lambda _, event: event.service,
    "parcel_carrier_id": lambda reading, _: reading.parcel_carrier_id,
    "description": lambda reading, _: reading.description,
    "signed_by": lambda reading, _: reading.signed_by,
    "delivery_address": lambda reading, _: reading.delivery_address,
    "corrects": lambda reading, _: reading.corrects,
    "event_id": lambda _, event: event.event_id,
}
"""Fields that may come from a value."""

Said = tuple[Reading, Event]
Identify = Callable[[Reading], Event]


@dataclass(frozen=True, slots=True)
class AttributedEvent:
    """One event, and by name of the field the pointers of the values that gave it; under `event` those without which it is none."""

    reading: Reading
    event: Event
    origins: Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribution:
    """`needed`: values without which nothing at all is read. `untried`: left out by the bounds. Pointers are those of `BodyValue`."""

    events: tuple[AttributedEvent, ...]
    leaves: int = 0
    ignored: tuple[str, ...] = ()
    needed: tuple[str, ...] = ()
    untried: int = 0
    is_faithful: bool = True
    """False: the document printed again reads otherwise than the body itself, or the body is none; then nothing is attributed."""
    values: Mapping[str, Value] = field(default_factory=dict)


def attribute(
    body: bytes, *, normalizer: Normalizer, received_at: datetime, identify: Identify
) -> Attribution:
    """Attribute each field of the body's events to values of the body.

    Raises UnreadableMessageError where the normalizer does for the body as it is.
    """
    # most readings are as they were: each is identified once
    identified = lru_cache(maxsize=READINGS_CACHED_MAX)(identify)

    def read(text: bytes) -> list[Said]:
        return [
            (reading, identified(reading)) for reading in normalizer(text, received_at).readings
        ]

    events = read(body)
    document = alterable(body)
    if document is None or read(document.text()) != events:
        return Attribution(
            events=tuple(AttributedEvent(*each, {}) for each in events), is_faithful=False
        )
    return _attribution(document, events, read)


def _attribution(
    document: AlterableDocument, events: list[Said], read: Callable[[bytes], list[Said]]
) -> Attribution:
    origins: list[dict[str, list[str]]] = [{} for _ in events]
    ignored: list[str] = []
    needed: list[str] = []
    size = max(len(document.text()), 1)
    readings_left = BYTES_MAX // size
    tried = 0
    for leaf in document.leaves[:LEAVES_MAX]:
        if readings_left < ALTERATIONS_MAX:
            break
        tried += 1
        found = _Differences(events)
        for altered in _alterations(leaf.value, found):
            readings_left -= 1
            found.add(_read_altered(document, (leaf,), (altered,), read))
        for given, names in zip(origins, found.names, strict=True):
            for name in names:
                given.setdefault(name, []).append(leaf.pointer)
        if found.is_needed:
            needed.append(leaf.pointer)
        elif not found.is_different:
            ignored.append(leaf.pointer)
    for index, given in enumerate(origins[: readings_left // len(REQUIRED)]):
        _attribute_repeated(
            document, document.leaves[:tried], events=events, index=index, given=given, read=read
        )
    said = {pointer for given in origins for pointers in given.values() for pointer in pointers}
    return Attribution(
        events=tuple(
            AttributedEvent(*event, given) for event, given in zip(events, origins, strict=True)
        ),
        leaves=len(document.leaves),
        ignored=tuple(pointer for pointer in ignored if pointer not in said),
        needed=tuple(needed),
        untried=len(document.leaves) - tried,
        values={leaf.pointer: leaf.value for leaf in document.leaves},
    )


def _attribute_repeated(
    document: AlterableDocument,
    leaves: Sequence[BodyValue],
    *,
    events: list[Said],
    index: int,
    given: dict[str, list[str]],
    read: Callable[[bytes], list[Said]],
) -> None:
    """Attribute to an event the fields that no single value gave it."""
    for name in REQUIRED:
        together = () if name in given else _printing(name, events[index], given, leaves)
        if together:
            altered = _read_altered(
                document, together, [_unknown(leaf.value) for leaf in together], read
            )
            if _gave(name, index, events, altered):
                given[name] = [leaf.pointer for leaf in together]


def _unknown(value: Value) -> str:
    return f"{WORD}{value}{WORD}"


def _read_altered(
    document: AlterableDocument,
    leaves: Sequence[BodyValue],
    values: Sequence[Value | None],
    read: Callable[[bytes], list[Said]],
) -> list[Said] | None:
    """Normalize the altered body; return None where it is unreadable."""
    for leaf, value in zip(leaves, values, strict=True):
        leaf.write(value)
    try:
        return read(document.text())
    except UnreadableMessageError:
        return None
    finally:
        for leaf in leaves:
            leaf.write(leaf.value)


def _printing(
    name: str, said: Said, given: Mapping[str, Sequence[str]], leaves: Sequence[BodyValue]
) -> Sequence[BodyValue]:
    """Return the values that say it, if several do: those that print it word for word, and for a status those that gave code and text."""
    reading = said[0]
    raw = reading.raw
    words = {"number": (reading.tracking_number,), "time": (reading.time.printed,)}.get(
        name, (raw.type, raw.code, raw.reason)
    )
    printed = {word.casefold() for word in words if word}
    pointers = (
        {*given.get("code", ()), *given.get("description", ())} if name == "status" else set()
    )
    return [
        leaf
        for leaf in leaves
        if leaf.pointer in pointers or str(leaf.value).strip().casefold() in printed
    ][:TOGETHER_MAX]


def _gave(name: str, index: int, events: list[Said], altered: list[Said] | None) -> bool:
    """Return whether the event is gone, or differs in this field."""
    partner = (
        None
        if altered is None
        else next((other for at, other in _pairs(events, altered) if at == index), events[index])
    )
    return partner is None or FIELDS[name](*partner) != FIELDS[name](*events[index])


class _Differences:
    """The differences that alterations of one value have made so far."""

    def __init__(self, events: list[Said]) -> None:
        self._events = events
        self.names: list[set[str]] = [set() for _ in events]
        self.is_different = False
        self.is_needed = False

    def add(self, altered: list[Said] | None) -> None:
        """Take in the events of an altered body; None: it is unreadable."""
        if altered is None:
            self.is_different = self.is_needed = True
        if altered is None or altered == self._events:
            return
        self.is_different = True
        for index, partner in _pairs(self._events, altered):
            if partner is None:
                self.names[index].add(EXISTENCE)
                continue
            self.names[index] |= {
                name for name, of in FIELDS.items() if of(*self._events[index]) != of(*partner)
            }

    @property
    def has_field(self) -> bool:
        """True if an event differs in more than its presence."""
        return any(names - {EXISTENCE} for names in self.names)


def _alterations(value: Value, found: _Differences) -> Iterator[Value | None]:
    """Yield what no table knows, then nothing at all; and where that makes a difference what resembles the value."""
    if isinstance(value, bool):
        yield from (not value, None)
        return
    yield _unknown(value)
    yield None
    if not found.is_different:
        return
    similar = iter(
        _similar_numbers(value) if isinstance(value, int | float) else _similar_texts(value)
    )
    for _ in range(ALTERATIONS_MAX - 2):
        before = [set(names) for names in found.names]
        following = next(similar, None)
        if following is None:
            return
        yield following
        if found.has_field and found.names != before:
            return


def _similar_numbers(value: float) -> Iterator[Value]:
    """Yield the number with another second (in seconds or milliseconds), another minute and another day, in case it is a time."""
    for step in (1, 1000, 60_000, 86_400_000):
        yield value + step


def _similar_texts(value: str) -> Iterator[Value]:
    """Yield the text with another digit in one position, from the end, so that a time stays a time."""
    for index in range(len(value) - 1, -1, -1):
        digit = value[index]
        if digit.isascii() and digit.isdigit():
            yield f"{value[:index]}{int(digit) + 1 if digit in '01234' else int(digit) - 1}{value[index + 1 :]}"


def _pairs(events: list[Said], altered: list[Said]) -> Iterator[tuple[int, Said | None]]:
    """Yield the index of each event that the alteration changed or removed, with what became of it."""
    if len(events) == len(altered):
        # two scans may be alike: the one in its place is meant
        differing = [
            index
            for index, (one, other) in enumerate(zip(events, altered, strict=True))
            if one != other
        ]
    else:
        differing = list(range(max(len(events), len(altered))))
    gone = _without(events, altered, differing)
    new = [altered[index] for index in _without(altered, events, differing)]
    if len(gone) == len(new):
        yield from zip(gone, new, strict=True)
        return
    for index in gone:
        partner = max(
            ((_likeness(events[index], other), at) for at, other in enumerate(new[:SIMILAR_MAX])),
            default=(0, 0),
        )
        yield index, new.pop(partner[1]) if partner[0] > len(FIELDS) // 2 else None


def _without(ones: list[Said], others: list[Said], differing: Sequence[int]) -> list[int]:
    """Return the indices of `ones` that are nowhere among `others`, where these differ."""
    there = Counter(others[index] for index in differing if index < len(others))
    found = []
    for index in differing:
        if index < len(ones) and there[ones[index]]:
            there[ones[index]] -= 1
        elif index < len(ones):
            found.append(index)
    return found


def _likeness(one: Said, other: Said) -> int:
    return sum(of(*one) == of(*other) for of in FIELDS.values())
