"""The log at one point in time: how far it was signed, what still waited, the heads of all chains,
how to cut the work, and which shipments were erased.

No key is destroyed without an `erase` entry of the log, and none comes back after one.
"""

import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from typing import Any, Final, Self

import orjson
from psycopg import Connection

from events.merkle.checkpoint import NoteError, VerifierKey, second_signature_fault
from statesvc.addons.verify.chain import SECRET_BYTES, Sums, in_portions, read_heads
from statesvc.addons.verify.entries import SQL as ENTRIES
from statesvc.addons.verify.fault import LogFault
from statesvc.addons.verify.forks import LogFork, read_forks
from statesvc.addons.verify.key_rows import add_counters, add_rows
from statesvc.addons.verify.notification_rows import read_deletions, take_rows
from statesvc.addons.verify.version_order import Inversion
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

    def state(self) -> dict[str, Any]:
        return {
            "size": self.size,
            "origin": self.origin,
            "keys": list(map(str, self.keys)),
            "announced": dict(self.announced),
            "waiting": sorted(self.waiting),
            "cuts": list(self.cuts),
            "entries": self.entries,
            "sums": {part: str(rest) for part, rest in self.sums.items() if rest},
            "secret": self.secret.hex(),
            "erased": sorted(self.erased),
            "deletions": dict(self.deletions),
            "forks": [astuple(fork) for fork in self.forks],
            "fork_faults": [astuple(fault) for fault in self.fork_faults],
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        return cls(
            size=state["size"],
            origin=state["origin"],
            keys=tuple(map(VerifierKey.parse, state["keys"])),
            announced=state["announced"],
            waiting=frozenset(state["waiting"]),
            cuts=state["cuts"],
            entries=state["entries"],
            sums=Sums({part: int(rest) for part, rest in state["sums"].items()}),
            secret=bytes.fromhex(state["secret"]),
            erased=frozenset(state["erased"]),
            deletions=state["deletions"],
            forks=tuple(LogFork(*fork) for fork in state["forks"]),
            fork_faults=tuple(LogFault(*fault) for fault in state["fork_faults"]),
        )


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


def is_sealed_late(connection: Connection[Any], inversion: Inversion) -> bool:
    """Return whether a version behind its successor was written before it, but queued late.

    It cannot have been inserted later: the next version, sealed before it, has its hash.
    """
    row = connection.execute(
        _SQL["sealed_late"], {"index": inversion.late_index, "next_index": inversion.next_index}
    ).fetchone()
    return row is not None and bool(row[0])


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
