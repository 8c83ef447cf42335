"""The log at one point in time: how far it was signed, what still waited, the heads of all chains,
how to cut the work, and which shipments were erased.

No key is destroyed without an `erase` entry of the log, and none comes back after one.
"""

import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import orjson
from psycopg import Connection

from events.merkle.checkpoint import NoteError, VerifierKey, second_signature_fault
from statesvc.addons.verify.chain import SECRET_BYTES, Sums, in_portions, read_heads
from statesvc.addons.verify.entries import SQL as ENTRIES
from statesvc.addons.verify.fault import FAULTS_MAX, LogFault
from statesvc.addons.verify.forks import LogFork, read_forks
from statesvc.addons.verify.key_rows import add_counters, add_rows
from statesvc.addons.verify.notification_rows import read_deletions, take_rows
from statesvc.database.queries import queries
from statesvc.log.signing_keys import ROTATE

_SQL = queries("statesvc.addons.verify", "log_state")


def read_erased(connection: Connection[Any]) -> frozenset[str]:
    return frozenset(shipment_id for (shipment_id,) in connection.execute(_SQL["erased"]))


def compare_erasures(
    connection: Connection[Any], erased: Iterable[str], entries: frozenset[str]
) -> Iterator[LogFault]:
    """Compare erasures as of the snapshot; later erasures are no difference."""
    for shipment_id in sorted(set(erased) - entries):
        yield LogFault(
            "stream",
            f"shipment_id={shipment_id}",
            "sealed_key",
            "was destroyed, and no `erase` entry of the log says so",
        )
    rows = connection.execute(_SQL["not_erased"], {"shipment_ids": sorted(entries)})
    for (shipment_id,) in rows:
        yield LogFault(
            "stream",
            f"shipment_id={shipment_id}",
            "sealed_key",
            "is back, though the log says that the shipment was erased",
        )


# Entries in a range of batches: some 10 MB.
RANGE_ENTRIES: Final = 8_000
_LOWEST: Final = -(2**63)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSnapshot:
    """`cuts`: batch ids at which the ranges begin and the last ends.

    `sums`: heads and notifications subtracted, dedupe keys and counters of conflicts added,
    hashed under `secret`.
    """

    size: int
    origin: str
    keys: tuple[VerifierKey, ...]
    announced: Mapping[str, int]
    waiting: frozenset[int]
    cuts: Sequence[int]
    entries: int
    sums: Sums = field(repr=False)
    secret: bytes = field(repr=False)
    erased: frozenset[str] = frozenset()
    deletions: Mapping[str, int] = field(default_factory=dict)
    forks: Sequence[LogFork] = ()
    fork_faults: Sequence[LogFault] = ()
    unqueued: Sequence[int] = ()
    """Batches that were not queued for the sealer; they wait all the same."""


def read_snapshot(
    connection: Connection[Any], *, range_entries: int = RANGE_ENTRIES
) -> LogSnapshot:
    secret = secrets.token_bytes(SECRET_BYTES)
    with connection.transaction():
        connection.execute(ENTRIES["snapshot"])
        named = [
            (origin, public_key)
            for origin, public_key in connection.execute(_SQL["origin"], binary=True)
        ]
        (size,) = connection.execute(_SQL["newest"]).fetchone() or (0,)
        announced = _announced(connection)
        waiting = dict(connection.execute(_SQL["waiting"], {"size": size}).fetchall())
        cuts, entries = _cuts(connection, range_entries)
        sums = Sums()
        read_heads(connection, sums)
        add_rows(connection, sums, secret)
        add_counters(connection, sums, secret)
        deletions = read_deletions(connection)
        take_rows(connection, sums, secret, deletions)
        erased = read_erased(connection)
        forks, fork_faults = read_forks(connection)
    return LogSnapshot(
        size=size,
        origin=named[0][0] if named else "",
        keys=tuple(VerifierKey(origin, public_key) for origin, public_key in named),
        announced=announced,
        waiting=frozenset(waiting),
        cuts=cuts,
        entries=entries,
        sums=sums,
        secret=secret,
        erased=erased,
        deletions=deletions,
        forks=forks,
        fork_faults=fork_faults,
        unqueued=sorted(batch_id for batch_id, is_unqueued in waiting.items() if is_unqueued),
    )


class Inversions(NamedTuple):
    """Versions that stand in the log after their successor.

    `late`: their batches were written before, and sealed later. `faults`: all others.
    """

    late: list[LogFault]
    faults: list[LogFault]


def read_inversions(connection: Connection[Any]) -> Inversions:
    """Look through the sealed events in the tables."""
    found = Inversions([], [])
    for shipment_id, version, index, next_version, next_index, is_late in connection.execute(
        _SQL["inversions"], {"most": FAULTS_MAX}
    ):
        row = f"shipment_id={shipment_id} version={version}"
        why = f"is sealed at index {index}, after version {next_version} at {next_index}"
        # the successor has the hash of a late one, so that was not inserted after it
        (found.late if is_late else found.faults).append(LogFault("event", row, "version", why))
    return found


def ids_beyond(connection: Connection[Any]) -> int | None:
    """Return a batch id in some table that was never given out; None where there is none."""
    given, highest = connection.execute(_SQL["id_bounds"]).fetchone() or (0, 0)
    return highest if highest is not None and highest > given else None


def second_signature_faults(
    connection: Connection[Any], trusted: Sequence[VerifierKey]
) -> list[LogFault]:
    """Check the ML-DSA-44 signature of the newest head."""
    row = connection.execute(_SQL["second_signature"], binary=True).fetchone()
    if row is None:
        return []
    note, line, names, cosigners = row
    stated = map(VerifierKey, names, cosigners)
    why = second_signature_fault(note, line, trusted=trusted, stated=stated)
    return [] if why is None else [LogFault("second_signature", "newest head", "line", why)]


def _announced(connection: Connection[Any]) -> dict[str, int]:
    found: dict[str, int] = {}
    for index, canonical in connection.execute(
        _SQL["announcements"], {"verb": ROTATE}, binary=True
    ):
        try:
            key = VerifierKey.parse(orjson.loads(canonical)["details"]["key"])
        except (NoteError, orjson.JSONDecodeError, KeyError, TypeError):
            # the entry's own check says what is wrong with it
            continue
        found[str(key)] = min(index, found.get(str(key), index))
    return found


def _cuts(connection: Connection[Any], range_entries: int) -> tuple[list[int], int]:
    """Return the cuts, from below all ids on, so that an entry with an id of its own is found
    too.
    """
    cuts, total, since = [_LOWEST], 0, 0
    last = 0
    for batch_id, entries in in_portions(connection, "batches", _SQL["batch_sizes"]):
        if since >= range_entries:
            cuts.append(batch_id)
            since = 0
        since += entries
        total += entries
        last = batch_id
    return [*cuts, last + 1], total
