"""The whole verification: a snapshot, the ranges on several processes, their findings joined in
order.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import chain, pairwise
from typing import Any, Final

from psycopg import Connection

from events.crypto.sealing import MasterKeys
from events.merkle.checkpoint import NoteError, VerifierKey, open_checkpoint
from statesvc.addons.verify.archived_months import ArchivedMonths
from statesvc.addons.verify.batches import BatchRange
from statesvc.addons.verify.chain import follow, unequal_parts
from statesvc.addons.verify.entries import SQL as ENTRIES
from statesvc.addons.verify.event_ids import read_digests
from statesvc.addons.verify.fault import FAULTS_MAX, LogFault
from statesvc.addons.verify.forks import given_up
from statesvc.addons.verify.key_rows import (
    COUNTERS,
    FACTS,
    ROWS,
    compare_counters,
    compare_keys,
    unexpected_aliases,
)
from statesvc.addons.verify.log_state import (
    LogSnapshot,
    compare_erasures,
    ids_beyond,
    read_inversions,
    read_snapshot,
    second_signature_faults,
)
from statesvc.addons.verify.message_rows import renamed_streams
from statesvc.addons.verify.notification_rows import OPEN, WORDS, compare_notifications, reworded
from statesvc.addons.verify.tree import (
    RANGE_LEAVES,
    HeadRules,
    RetainedHead,
    TreeBuilder,
    unexpected_subtree,
)
from statesvc.addons.verify.worker_pool import (
    LogAccess,
    WorkerPool,
    check_batch_range,
    check_file,
    check_leaf_range,
    connect,
    worker_pool,
)
from statesvc.log.cluster import Cluster
from statesvc.log.log_months import SHARE_MONTHS
from statesvc.log.timestamp import StampError, Trust, check_stamp, read_stamp
from statesvc.log.timestamp_store import SQL

# `(entries checked, all)`.
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class VerificationRequest:
    """A request for verification. `note`: a head that was stored elsewhere.

    `keys`: those that the caller trusts; `keys_name`: their source.
    No key is believed because the database has it: anyone who can write the log's entries can write
    its keys. Without keys those are trusted that signed the note, and with neither the log is found
    consistent with itself at most.
    """

    access: LogAccess
    note: str | None = None
    note_name: str = "checkpoint"
    keys: Sequence[VerifierKey] = ()
    keys_name: str = "--key"
    processes: int = 1
    """1: none but this one."""
    master: str | None = None
    """Address of a cluster that does the work."""
    trust: Trust | None = None
    """Trusted time stamping authorities.

    None: stamps are only checked against their checkpoints.
    """


@dataclass(slots=True)
class VerificationReport:
    size: int = 0
    entries: int = 0
    events: int = 0
    batches: int = 0
    waiting: int = 0
    unqueued: int = 0
    """Batches that are neither sealed nor queued: one fault for them all."""
    heads: int = 0
    stamps: int = 0
    seconds: float = 0.0
    faults: list[LogFault] = field(default_factory=list)
    remarks: list[LogFault] = field(default_factory=list)
    """Remarks for a human: sealed, but strange."""
    unchecked: Counter[str] = field(default_factory=Counter)
    """Counts of unchecked parts, by reason."""
    forks: list[str] = field(default_factory=list)
    """Forks of the log after a restore, with the lost heads."""
    projection: list[LogFault] = field(default_factory=list)
    """Live states that differ from the fold of their events; `rebuild` writes them from the log."""
    shipments_drifted: int | None = None
    """Number of shipments that differ; None: not compared."""
    unread_files: list[str] = field(default_factory=list)
    """Files of archived months that are missing, or not as they were written."""
    trusted_by: str | None = None
    """Source of the verdict's keys; None: the verified database itself."""

    @property
    def consistent(self) -> bool:
        """True if the log has no fault, as far as the database can be trusted."""
        return not self.faults

    @property
    def sound(self) -> bool:
        """True if the log has no fault, and a key from outside the database confirms it."""
        return self.consistent and self.trusted_by is not None


class Verification:
    def __init__(self, order: VerificationRequest, progress: Progress) -> None:
        self._order = order
        self._progress = progress
        self.report = VerificationReport()
        self._builder = TreeBuilder((), {})
        self._workers: WorkerPool | Cluster | None = None
        self._is_abandoned = False
        self._retained: RetainedHead | None = None
        self._erased: set[str] = set()

    def run(self) -> VerificationReport:
        began = time.monotonic()
        with connect(self._order.access.dsn) as connection:
            # no month leaves the tables meanwhile
            connection.execute(SHARE_MONTHS)
            archived = ArchivedMonths.read(connection, self._order.access.archive)
            with worker_pool(
                self._order.access, self._order.processes, self._order.master
            ) as workers:
                self._workers = workers
                # abandoned before the workers existed: nobody else would tell them
                if self._is_abandoned:
                    workers.abandon()
                # what is true of the log now; everything that commits later is not part of this run
                snapshot = self._begin(connection)
                months = ((place,) for place in range(len(archived.months)))
                files = list(chain.from_iterable(workers.each(check_file, months)))
                self.report.unread_files = [fault.table for fault in files]
                self._found(files)
                # before the entries: the tree says where each batch must be
                self._tree(snapshot, workers)
                self._entries(snapshot, workers)
            self._conclude(connection, snapshot, archived, whole=not files)
        self.report.seconds = time.monotonic() - began
        return self.report

    def abandon(self) -> None:
        """End `run`, which another thread is in, by an error."""
        self._is_abandoned = True
        if self._workers is not None:
            self._workers.abandon()

    def _begin(self, connection: Connection[Any]) -> LogSnapshot:
        snapshot = read_snapshot(connection)
        self._retained = self._retained_head(snapshot)
        self._builder = self._trusting(snapshot)
        self.report.size, self.report.waiting = snapshot.size, len(snapshot.waiting)
        self._found(snapshot.fork_faults)
        if snapshot.unqueued:
            count = self.report.unqueued = len(snapshot.unqueued)
            row = f"batch_id={snapshot.unqueued[0]} to {snapshot.unqueued[-1]}"
            why = (
                f"{count:,} batches are neither sealed nor queued to be: written while a trigger"
                " was disabled (`statesvc doctor`), then a running sealer queues them; or"
                " inserted, or taken out of the queue, by hand"
            )
            self._found([LogFault("batch", row, "batch_id", why)])
        return snapshot

    def _trusting(self, snapshot: LogSnapshot) -> TreeBuilder:
        """Return the tree before its first entry, with the trusted signers."""
        if self._order.keys:
            self.report.trusted_by = self._order.keys_name
            return TreeBuilder(map(str, self._order.keys), snapshot.announced)
        if self._retained is not None:
            self.report.trusted_by = self._retained.name
            return TreeBuilder(
                self._retained.signed_by, snapshot.announced, covered=self._retained.size
            )
        # the first key alone: later ones count only if an entry that it covers announces them
        return TreeBuilder(map(str, snapshot.keys[:1]), snapshot.announced)

    def _retained_head(self, snapshot: LogSnapshot) -> RetainedHead | None:
        """Return the head that was stored elsewhere, its signature checked."""
        order = self._order
        if order.note is None:
            return None
        try:
            opened = open_checkpoint(
                order.note, [*snapshot.keys, *order.keys], origin=snapshot.origin or None
            )
        except NoteError as error:
            self._found([LogFault(order.note_name, "note", "signature", str(error))])
            return None
        head = opened.checkpoint
        if (why := given_up(snapshot.forks, head)) is not None:
            self._found(
                [LogFault(order.note_name, f"epoch={head.epoch} size={head.size}", "size", why)]
            )
            return None
        # not a fault of the note: the log is shorter than what it once signed
        if head.size > snapshot.size:
            why = (
                f"has {head.size} entries, the log's own heads reach to {snapshot.size}: the log"
                " was cut off, or restored from a backup"
            )
            self._found([LogFault(order.note_name, f"size={head.size}", "size", why)])
            return None
        return RetainedHead(
            head.size, head.root, tuple(map(str, opened.signed_by)), order.note_name
        )

    def _tree(self, snapshot: LogSnapshot, workers: WorkerPool | Cluster) -> None:
        rules = HeadRules(
            keys=tuple(dict.fromkeys([*self._order.keys, *snapshot.keys])),
            origin=snapshot.origin,
            forks=snapshot.forks,
            roots=[
                RetainedHead(fork.size, bytes.fromhex(fork.root), (), f"fork of epoch {fork.epoch}")
                for fork in snapshot.forks
            ]
            + ([] if self._retained is None else [self._retained]),
        )
        begins = range(0, snapshot.size, RANGE_LEAVES)
        calls = ((begin, min(begin + RANGE_LEAVES, snapshot.size), rules) for begin in begins)
        for grown in workers.each(check_leaf_range, calls):
            self._found(self._builder.join(grown))
            self._remark(grown.remarks)

    def _entries(self, snapshot: LogSnapshot, workers: WorkerPool | Cluster) -> None:
        calls = (
            (
                BatchRange(
                    low=low,
                    high=high,
                    sealed_below=snapshot.size,
                    secret=snapshot.secret,
                    waiting=frozenset(
                        batch_id for batch_id in snapshot.waiting if low <= batch_id < high
                    ),
                    forks=snapshot.forks,
                    deletions=snapshot.deletions,
                ),
            )
            for low, high in pairwise(snapshot.cuts)
        )
        for checked in workers.each(check_batch_range, calls):
            self.report.entries += checked.entries
            self.report.events += checked.events
            self.report.batches += checked.batches
            snapshot.sums.update(checked.sums)
            self._erased |= checked.erased
            self.report.unchecked.update(checked.unchecked)
            self._found(checked.faults)
            self._progress(self.report.entries, max(snapshot.entries, self.report.entries))

    def _conclude(
        self,
        connection: Connection[Any],
        snapshot: LogSnapshot,
        archived: ArchivedMonths,
        *,
        whole: bool,
    ) -> None:
        self.report.heads = self._builder.heads
        self.report.forks = [str(fork) for fork in snapshot.forks]
        self._found(unexpected_subtree(connection))
        # one snapshot for all of these: read apart, a commit in between would look like a fault
        with connection.transaction():
            connection.execute(ENTRIES["snapshot"])
            self._found(unexpected_aliases(connection))
            self._found(reworded(connection))
            self._found(renamed_streams(connection))
            inversions = read_inversions(connection)
        self._remark(inversions.late)
        self._found(inversions.faults)
        self.report.stamps, faults = check_stamps(connection, self._order.trust)
        self._found(faults)
        self._found(second_signature_faults(connection, self._order.keys))
        beyond = ids_beyond(connection)
        if beyond is not None:
            self._found(
                [
                    LogFault(
                        "batch",
                        f"batch_id={beyond}",
                        "batch_id",
                        "was never given out: a row with it was inserted",
                    )
                ]
            )
        # where a file is not as it was written, chains break and entries are missing for that alone
        if whole:
            self._found(compare_erasures(connection, snapshot.erased, frozenset(self._erased)))
        if whole:
            self._compare_keys(connection, snapshot, archived)
            self._compare_parts(
                connection,
                unequal_parts(snapshot.sums, WORDS, OPEN),
                archived,
                compare_notifications,
            )
            self._compare_parts(
                connection, unequal_parts(snapshot.sums, COUNTERS), archived, compare_counters
            )
            self._compare_parts(connection, unequal_parts(snapshot.sums), archived, follow)

    def _compare_keys(
        self, connection: Connection[Any], snapshot: LogSnapshot, archived: ArchivedMonths
    ) -> None:
        master = self._order.access.master_keys
        digests = read_digests(connection, None if master is None else MasterKeys(master))
        # not every verifier can compute facts
        names = (ROWS,) if digests is None else (ROWS, FACTS)
        for part in unequal_parts(snapshot.sums, *names):
            # a broken log has millions: the first show where to look
            if len(self.report.faults) >= FAULTS_MAX:
                return
            with connection.transaction():
                connection.execute(ENTRIES["snapshot"])
                self._found(compare_keys(connection, part, archived, digests))

    def _compare_parts(
        self,
        connection: Connection[Any],
        parts: Iterable[str],
        archived: ArchivedMonths,
        compare: Callable[[Connection[Any], str, ArchivedMonths], Iterator[LogFault]],
    ) -> None:
        for part in parts:
            if len(self.report.faults) >= FAULTS_MAX:
                return
            with connection.transaction():
                connection.execute(ENTRIES["snapshot"])
                self._found(compare(connection, part, archived))

    def _found(self, faults: Iterable[LogFault]) -> None:
        for fault in faults:
            # a missing file is found as a whole, and again with its batches
            if len(self.report.faults) < FAULTS_MAX and fault not in self.report.faults:
                self.report.faults.append(fault)

    def _remark(self, remarks: Sequence[LogFault]) -> None:
        self.report.remarks += remarks[: FAULTS_MAX - len(self.report.remarks)]


_CLOCKS_DIFFER: Final = timedelta(minutes=5)


def check_stamps(connection: Connection[Any], trust: Trust | None) -> tuple[int, list[LogFault]]:
    """Return the number of stamps and their faults.

    A deleted stamp leaves no trace here: keep important stamps outside.
    """
    faults = []
    rows = connection.execute(SQL["all"], binary=True).fetchall()
    for tree_size, stamped_at, authority, token, note, created_at in rows:
        row = f"tree_size={tree_size} stamped_at={stamped_at.isoformat()}"

        def fault(field: str, why: str, row: str = row) -> None:
            faults.append(LogFault("checkpoint_stamp", row, field, why))

        if note is None:
            fault("tree_size", "there is no checkpoint of this size")
            continue
        try:
            stamp = read_stamp(token, note) if trust is None else check_stamp(token, note, trust)
        except StampError as error:
            fault("token", str(error))
            continue
        if stamp.stamped_at != stamped_at:
            fault("stamped_at", "is not the time that the stamp says")
        # the columns are for queries: what counts is in the token, and they must agree with it
        if stamp.authority != authority:
            fault("authority", "is not who signed the stamp")
        if created_at > stamp.stamped_at + _CLOCKS_DIFFER:
            faults.append(
                LogFault(
                    "checkpoint",
                    f"tree_size={tree_size}",
                    "created_at",
                    "is later than its time stamp: a clock was wrong, or set",
                )
            )
    return len(rows), faults
