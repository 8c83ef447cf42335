"""Child processes that fold slices of the log, into the spare table or against the live table.

A child holds one connection, as the owner, for its whole life; a slice is read in one statement, so
under one snapshot.
"""

import asyncio
import gc
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any, Final
from uuid import UUID

import orjson
from psycopg import AsyncConnection, IsolationLevel

from projections.row import ShipmentRow, is_observation, rebuilt_row
from projections.state import ShipmentState
from statesvc.database.open_connection import open_connection
from statesvc.database.password_command import choose_password_command
from statesvc.database.queries import encoded, queries, send
from statesvc.database.server_niceness import lower_priority
from statesvc.database.service_connection import names_several_hosts
from statesvc.log.json_compression import decompress_json
from statesvc.shipments import projection_store
from statesvc.shipments.expectation_rules import DEFAULTS, RuleBook, read_rules
from statesvc.shipments.local_time import local_times
from statesvc.shipments.rebuild.staging import Event, Slice, Staging, merged

_SQL = queries("statesvc.shipments.rebuild", "rebuild")
_SHIPMENT = itemgetter(0)
Connection = AsyncConnection[Any]


# The live table has no row for events that are there.
MISSING: Final = "missing"
# The live table has a row without any event.
UNFOUNDED: Final = "unfounded"


@dataclass(frozen=True, slots=True)
class Drift:
    """A shipment that reads differently. `fields`: columns, or one of the words above."""

    shipment_id: UUID
    carrier_id: str
    fields: tuple[str, ...]


class RebuildProcess:
    def __init__(self, dsn: str, staging: Staging | None) -> None:
        self.runner = asyncio.Runner()
        self.staging = staging
        self.connection = self.runner.run(connect(dsn))
        self.runner.run(self.connection.execute(_SQL["fold_in_bulk"]))
        lower_priority(self.connection)


_children: list[RebuildProcess] = []


def begin(dsn: str, staging: Staging | None, password_command: str | None) -> None:
    """Prepare a child, once, before its first slice. `staging`: the events that are archived."""
    choose_password_command(password_command)
    # a slice makes hundreds of thousands of objects and no cycle: searching for some
    # is a fifth of the work
    gc.disable()
    _children.append(RebuildProcess(dsn, staging))


def fill_slice(piece: Slice) -> int:
    """Add the rebuilt rows of the slice to the spare table; return how many events they are made
    of.
    """
    (child,) = _children
    return child.runner.run(_fill(child, piece))


def compare_slice(piece: Slice, archived: Iterable[Event] | None = None) -> tuple[int, list[Drift]]:
    """Return the number of events of the slice, and the live rows that differ from their fold.

    `archived`: instead of those that are staged.
    """
    (child,) = _children
    return child.runner.run(_compare(child, piece, archived))


async def connect(dsn: str) -> Connection:
    """Open a connection of the rebuild, in autocommit.

    To compare, a role that only reads is enough.
    """
    connection = await open_connection(
        dsn, application_name="statesvc rebuild", writes=names_several_hosts(dsn)
    )
    await connection.execute(_SQL["wait_briefly"])
    return connection


async def add_rows(connection: Connection, histories: Iterable[tuple[UUID, bytes]]) -> None:
    """Fold the histories (shipment by shipment, oldest event first) and add their
    rows to the spare table.
    """
    rules = await read_rules(connection)
    rows = list(rebuilt_rows(histories, rules))
    if rows:
        await connection.execute(
            projection_store.SQL["fill_spare"], encoded(rows, projection_store.SHIPMENT_COLUMNS)
        )


def rebuilt_rows(histories: Iterable[tuple[UUID, bytes]], rules: RuleBook) -> list[ShipmentRow]:
    return [
        rebuilt_row(shipment_id, [canonical for _, canonical in history], rules.of)
        for shipment_id, history in groupby(histories, key=_SHIPMENT)
    ]


async def _fill(child: RebuildProcess, piece: Slice) -> int:
    histories = await _histories(child, piece)
    await add_rows(child.connection, histories)
    return _events(histories)


async def _compare(
    child: RebuildProcess, piece: Slice, archived: Iterable[Event] | None
) -> tuple[int, list[Drift]]:
    connection = child.connection
    # an append and its projection commit together, so under one snapshot they agree
    await connection.set_isolation_level(IsolationLevel.REPEATABLE_READ)
    async with connection.transaction():
        histories = await _histories(child, piece, archived)
        asked = await send(
            connection,
            _SQL["slice_rows"],
            {"first": piece.first, "last": piece.last},
            lambda rows: {
                row[0]: ShipmentRow(*row)._replace(state=decompress_json(row[-1])) for row in rows
            },
        )
        live = await asked.rows()
    # with the default rules: what depends on rules is not compared
    return _events(histories), list(drifts(live, rebuilt_rows(histories, DEFAULTS)))


def _events(histories: Iterable[tuple[UUID, bytes]]) -> int:
    return sum(not is_observation(canonical) for _, canonical in histories)


async def _histories(
    child: RebuildProcess, piece: Slice, archived: Iterable[Event] | None = None
) -> Sequence[tuple[UUID, bytes]]:
    asked = await send(
        child.connection,
        _SQL["slice_histories"],
        {"first": piece.first, "last": piece.last},
        lambda rows: [
            (shipment_id, version, decompress_json(canonical))
            for shipment_id, version, canonical in rows
        ],
    )
    hot = await asked.rows()
    if archived is None and child.staging is not None:
        archived = child.staging.events(piece)
    if archived is None:
        return [(shipment_id, canonical) for shipment_id, _, canonical in hot]
    return merged(hot, archived)


def drifts(live: Mapping[UUID, ShipmentRow], rebuilt: Iterable[ShipmentRow]) -> Iterator[Drift]:
    founded = set()
    for row in rebuilt:
        founded.add(row.shipment_id)
        found = live.get(row.shipment_id)
        fields = (MISSING,) if found is None else _differing(found, row)
        if fields:
            yield Drift(row.shipment_id, row.carrier_id, fields)
    # what is left has no event: a row that the log does not know
    for shipment_id, row in live.items():
        if shipment_id not in founded:
            yield Drift(shipment_id, row.carrier_id, (UNFOUNDED,))


def _differing(live: ShipmentRow, rebuilt: ShipmentRow) -> tuple[str, ...]:
    if live == rebuilt:
        return ()
    # of the accumulator its meaning counts: an older program may have written it in another form
    alike = (
        {"state"}
        if ShipmentState.from_json(live.state) == ShipmentState.from_json(rebuilt.state)
        else set()
    )
    # when it is looked at again depends on the rules and on the watcher, which may put it off
    alike.add("due_at")
    moved = {
        name
        for name, mine, theirs in zip(live._fields, live, rebuilt, strict=True)
        if mine != theirs
    } - alike
    return tuple(
        name for name in live._fields if name in moved | _other_offsets(live.state, rebuilt.state)
    )


def _other_offsets(mine: bytes, theirs: bytes) -> set[str]:
    """Return the times that read differently on the wall clock; equal instants compare as equal."""
    ours, rebuilt = local_times(orjson.loads(mine)), local_times(orjson.loads(theirs))
    return {
        name
        for name in ours.keys() & rebuilt.keys()
        if ours[name].isoformat() != rebuilt[name].isoformat()
    }
