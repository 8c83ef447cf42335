"""The whole verification: a look at the moment, the stretches on several processes, their findings joined in order, the state kept.

What was done is kept in a file now and then, so that a long run can go on where it was stopped. The file is trusted as the machine is that
runs the verification: keep it as safe as the checkpoint.
"""

import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import orjson
from psycopg import Connection

from events.checkpoint import NoteError, VerifierKey, open_checkpoint
from statesvc.log.archive.month_ledger import SHARE_MONTHS
from statesvc.log.timestamp import Trust
from statesvc.log.verify.archived_months import Archived
from statesvc.log.verify.batches import Stretch
from statesvc.log.verify.chain import follow, suspicious
from statesvc.log.verify.entries import SQL as ENTRIES
from statesvc.log.verify.fault import FAULTS_MAX, Fault
from statesvc.log.verify.log_state import Moment, ids_beyond, look
from statesvc.log.verify.timestamp_checks import check_stamps
from statesvc.log.verify.tree_builder import Spine
from statesvc.log.verify.tree_range import STRETCH, Kept, stray_subtree
from statesvc.log.verify.worker_pool import Access, Crew, check, connect, crew, grow

Progress = Callable[[int, int], None]
"""`(entries checked, all)`."""
_SAVE_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What to verify. `note`: a head that was kept elsewhere. `keys`: those that the caller trusts; none: the log's first one."""

    access: Access
    note: str | None = None
    note_name: str = "checkpoint"
    keys: Sequence[VerifierKey] = ()
    processes: int = 1
    """1: none but this one."""
    state_file: Path | None = None
    trust: Trust | None = None
    """Whose time stamps are believed; None: stamps are only held against their checkpoints."""


@dataclass(slots=True)
class Report:
    """What was found."""

    size: int = 0
    entries: int = 0
    events: int = 0
    batches: int = 0
    waiting: int = 0
    heads: int = 0
    stamps: int = 0
    seconds: float = 0.0
    faults: list[Fault] = field(default_factory=list)

    @property
    def sound(self) -> bool:
        """Nothing is wrong."""
        return not self.faults


class Verification:
    """One run, or the rest of one."""

    def __init__(self, order: Order, progress: Progress) -> None:
        self._order = order
        self._progress = progress
        self.report = Report()
        self._spine = Spine((), {})
        self._trees = 0
        self._stretches = 0
        self._saved = time.monotonic()

    def run(self) -> Report:
        """Runs to the end."""
        began = time.monotonic()
        with connect(self._order.access.dsn) as connection:
            # no month leaves the tables meanwhile
            connection.execute(SHARE_MONTHS)
            archived = Archived.read(connection, self._order.access.archive)
            moment = self._begin(connection)
            files = list(archived.faults())
            self._found(files)
            kept = self._kept(moment)
            with crew(self._order.access, self._order.processes) as workers:
                self._tree(moment, kept, workers)
                self._entries(moment, workers)
            self._conclude(connection, moment, archived, whole=not files)
        self.report.seconds += time.monotonic() - began
        if self._order.state_file is not None:
            self._order.state_file.unlink(missing_ok=True)
        return self.report

    def _begin(self, connection: Connection[Any]) -> Moment:
        file = self._order.state_file
        if file is not None and file.exists():
            return self._resume(orjson.loads(file.read_bytes()))
        moment = look(connection)
        trusted = self._order.keys or moment.keys[:1]
        self._spine = Spine(map(str, trusted), moment.announced)
        self.report.size, self.report.waiting = moment.size, len(moment.waiting)
        return moment

    def _kept(self, moment: Moment) -> Kept | None:
        """The head that was kept elsewhere, its signature checked."""
        order = self._order
        if order.note is None:
            return None
        try:
            opened = open_checkpoint(order.note, [*moment.keys, *order.keys], origin=moment.origin or None)
        except NoteError as error:
            self._found([Fault(order.note_name, "note", "signature", str(error))])
            return None
        head = opened.checkpoint
        if head.size > moment.size:
            why = f"has {head.size} entries, the log's own heads reach to {moment.size}: the log was cut off, or restored from a backup"
            self._found([Fault(order.note_name, f"size={head.size}", "size", why)])
            return None
        return Kept(head.size, head.root, tuple(map(str, opened.signed_by)), order.note_name)

    def _tree(self, moment: Moment, kept: Kept | None, workers: Crew) -> None:
        keys = tuple(dict.fromkeys([*self._order.keys, *moment.keys]))
        begins = range(self._trees * STRETCH, moment.size, STRETCH)
        calls = ((begin, min(begin + STRETCH, moment.size), keys, moment.origin, kept) for begin in begins)
        for grown in workers.each(grow, calls):
            self._found(self._spine.join(grown))
            self._trees += 1
            self._keep(moment)

    def _entries(self, moment: Moment, workers: Crew) -> None:
        bounds = list(pairwise(moment.cuts))[self._stretches :]
        calls = (
            (
                Stretch(
                    low=low,
                    high=high,
                    sealed_below=moment.size,
                    waiting=frozenset(batch_id for batch_id in moment.waiting if low <= batch_id < high),
                ),
            )
            for low, high in bounds
        )
        for checked in workers.each(check, calls):
            self.report.entries += checked.entries
            self.report.events += checked.events
            self.report.batches += checked.batches
            moment.sums.update(checked.sums)
            self._found(checked.faults)
            self._stretches += 1
            self._progress(self.report.entries, max(moment.entries, self.report.entries))
            self._keep(moment)

    def _conclude(self, connection: Connection[Any], moment: Moment, archived: Archived, *, whole: bool) -> None:
        self.report.heads = self._spine.heads
        self._found(stray_subtree(connection))
        self.report.stamps, faults = check_stamps(connection, self._order.trust)
        self._found(faults)
        beyond = ids_beyond(connection)
        if beyond is not None:
            self._found([Fault("batch", f"batch_id={beyond}", "batch_id", "was never given out: a row with it was inserted")])
        # where a file is not as it was written, chains break for that alone
        for part in suspicious(moment.sums) if whole else ():
            if len(self.report.faults) >= FAULTS_MAX:
                return
            with connection.transaction():
                connection.execute(ENTRIES["snapshot"])
                self._found(follow(connection, part, archived))

    def _found(self, faults: Iterable[Fault]) -> None:
        for fault in faults:
            if len(self.report.faults) < FAULTS_MAX and fault not in self.report.faults:
                self.report.faults.append(fault)

    def _keep(self, moment: Moment) -> None:
        file = self._order.state_file
        if file is None or time.monotonic() < self._saved + _SAVE_SECONDS:
            return
        self._saved = time.monotonic()
        report = self.report
        state = {
            "moment": moment.state(),
            "spine": self._spine.state(),
            "trees": self._trees,
            "stretches": self._stretches,
            "counts": [report.size, report.entries, report.events, report.batches, report.waiting],
            "faults": [[fault.table, fault.row, fault.field, fault.why] for fault in report.faults],
        }
        unfinished = file.with_name(f"{file.name}.{os.getpid()}")
        unfinished.write_bytes(orjson.dumps(state))
        unfinished.replace(file)

    def _resume(self, state: dict[str, Any]) -> Moment:
        moment = Moment.from_state(state["moment"])
        self._spine = Spine.from_state(state["spine"], moment.announced)
        self._trees, self._stretches = state["trees"], state["stretches"]
        report = self.report
        report.size, report.entries, report.events, report.batches, report.waiting = state["counts"]
        report.faults = [Fault(*fault) for fault in state["faults"]]
        return moment
