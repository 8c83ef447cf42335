"""Each shipment's chain: every event names the previous leaf hash, up to the head of the stream.

Following each chain would need its events together, but they are scattered over the whole log.
Instead each event adds its own link and subtracts the link that it names, in any order: exactly the
heads must remain. A link is the leaf hash as a number, times a number of this shipment and version
alone. To forge such sums an attacker would have to choose leaf hashes, which the tree has fixed.
Sums are kept by part of the shipments' ids; a part whose sum is off is then followed event by
event, which finds the place.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from operator import itemgetter
from typing import Any, Final, LiteralString, TypeAlias

import orjson
from psycopg import Connection

from events.entry.kinds import NO_PREVIOUS, leaf_hash_of
from statesvc.addons.verify.archived_months import ArchivedMonths
from statesvc.addons.verify.fault import LogFault
from statesvc.database.queries import queries
from statesvc.log.json_compression import decompress_json

_SQL = queries("statesvc.addons.verify", "chain")
# Hexadecimal digits of a shipment's id that name its part: 4096 parts.
PREFIX: Final = 3

# By part; only nonzero sums count. Those of the dedupe keys have their own names (`dedupe_keys`).
Sums = Counter[str]


# Bytes of the secret of a run, under which rows are hashed before they are summed.
SECRET_BYTES: Final = 16
_HASH_BYTES: Final = 16


def secret_hash(secret: bytes, name: bytes) -> int:
    """Return a keyed hash as a number. BLAKE2 cannot be extended, so the secret may come first."""
    return int.from_bytes(blake2b(secret + name, digest_size=_HASH_BYTES).digest())


# An event as its chain sees it: shipment id, version, leaf hash, previous hash in hexadecimal as
# the entry has it.
Link: TypeAlias = tuple[str, int, bytes, str]


def link_of(shipment_id: str, version: int, leaf_hash: bytes, previous_hash: str) -> Link:
    """Return the link of an event. Raises ValueError for an invalid id or hash."""
    # here, so that the sums below can take both for numbers
    int(shipment_id.replace("-", ""), 16), int(previous_hash, 16)
    return shipment_id, version, leaf_hash, previous_hash


def add_events(sums: Sums, links: Iterable[Link]) -> None:
    """Add each event's own link, less the link that it names, in any order.

    Between consecutive events, as those of a message, the two cancel: neither is computed.
    """
    last_id, last_version, last_hash = "", 0, NO_PREVIOUS
    for shipment_id, version, leaf_hash, previous_hash in links:
        if (
            version != last_version + 1
            or shipment_id != last_id
            or previous_hash != last_hash.hex()
        ):
            _add(sums, last_id, last_version, int.from_bytes(last_hash))
            _add(sums, shipment_id, version - 1, -int(previous_hash, 16))
        last_id, last_version, last_hash = shipment_id, version, leaf_hash
    _add(sums, last_id, last_version, int.from_bytes(last_hash))


def add_head(sums: Sums, shipment_id: str, version: int, head_hash: bytes) -> None:
    """Subtract the rest of a whole chain: the link of its head."""
    _add(sums, shipment_id, version, -int.from_bytes(head_hash))


def unequal_parts(sums: Sums, *names: str) -> list[str]:
    """Return the parts with differing sums under these names.

    Without names, parts with a broken chain.
    """
    own = names or ("",)
    # a part without a rest is whole: only the others are followed event by event
    return sorted({key[-PREFIX:] for key, rest in sums.items() if rest and key[:-PREFIX] in own})


def in_portions(
    connection: Connection[Any],
    name: str,
    query: LiteralString,
    parameters: Mapping[str, Any] | None = None,
) -> Iterator[tuple[Any, ...]]:
    """Yield rows through a cursor of the server: those of a whole log never stand in memory."""
    with connection.cursor(name, binary=True) as cursor:
        cursor.itersize = 20_000
        yield from cursor.execute(query, parameters)


def read_heads(connection: Connection[Any], sums: Sums) -> None:
    """Subtract all heads, as the transaction sees them."""
    for shipment_id, version, head_hash in in_portions(connection, "heads", _SQL["all_heads"]):
        add_head(sums, shipment_id, version, head_hash)


def follow(connection: Connection[Any], part: str, archived: ArchivedMonths) -> Iterator[LogFault]:
    """Yield the broken links of a part, event by event, inside a transaction with one snapshot."""
    bounds = bounds_of(part)
    heads = {row[0]: row[1:] for row in connection.execute(_SQL["heads"], bounds, binary=True)}
    shipment_id, version, leaf_hash = "", 0, NO_PREVIOUS
    ends: dict[str, tuple[int, bytes]] = {}
    events = [_chained(*event) for event in connection.execute(_SQL["events"], bounds, binary=True)]
    if archived.months:
        known = {event[:2] for event in events}
        events = sorted(
            [*events, *(event for event in archived.events_of(part) if event[:2] not in known)],
            key=itemgetter(0, 1),
        )
    for found_id, found_version, found_hash, canonical in events:
        if found_id != shipment_id:
            shipment_id, version, leaf_hash = found_id, 0, NO_PREVIOUS
        row = f"shipment_id={shipment_id} version={found_version}"
        if found_version != version + 1:
            yield LogFault(
                "event",
                row,
                "version",
                f"follows version {version}: " + _gap(version, found_version),
            )
        elif _previous(canonical) != leaf_hash.hex():
            yield LogFault(
                "event", row, "previous_hash", f"is not the leaf hash of version {version}"
            )
        version, leaf_hash = found_version, found_hash
        ends[shipment_id] = (version, leaf_hash)
    for shipment_id, (version, head_hash) in heads.items():
        end = ends.pop(shipment_id, (0, NO_PREVIOUS))
        if end != (version, head_hash):
            why = (
                f"says version {version}, the last event has {end[0]}"
                if end[0] != version
                else "is not the leaf hash of the last event"
            )
            yield LogFault(
                "stream",
                f"shipment_id={shipment_id}",
                "head_hash" if end[0] == version else "version",
                why,
            )
    for shipment_id in ends:
        yield LogFault(
            "stream",
            f"shipment_id={shipment_id}",
            "shipment_id",
            "is missing, though the shipment has events",
        )


def _add(sums: Sums, shipment_id: str, version: int, link: int) -> None:
    if link:
        sums[shipment_id[:PREFIX]] += link * (int(shipment_id.replace("-", ""), 16) + version)


def _gap(before: int, found: int) -> str:
    return f"version {before + 1} is missing" if found > before else "it is there twice"


def _previous(canonical: bytes) -> str | None:
    try:
        document = orjson.loads(canonical)
    except orjson.JSONDecodeError:
        return None
    return document.get("previous_hash") if isinstance(document, dict) else None


def _chained(shipment_id: str, version: int, stored: bytes) -> tuple[str, int, bytes, bytes]:
    """Return leaf hash and bytes of an event; undecodable bytes give an empty hash."""
    try:
        canonical = decompress_json(stored)
    except ValueError:
        # changed bytes still have a hash, which the chain then shows as broken
        canonical = stored
    return shipment_id, version, leaf_hash_of(canonical), canonical


# The part that all shipments belong to.
WHOLE: Final = ""


def bounds_of(part: str) -> dict[str, str]:
    """Return the lowest and the highest id of a part."""
    return {"low": _bound(part, "0"), "high": _bound(part, "f")}


def _bound(part: str, digit: str) -> str:
    digits = part.ljust(32, digit)
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
