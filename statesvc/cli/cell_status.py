"""`statesvc cell status`: one line for each cell, worst first, and what needs a human there."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import psycopg

from statesvc.api.service_status import ServiceStatus, read_status
from statesvc.api.status_operations import shown_status
from statesvc.background.duration import duration
from statesvc.cells.directory import CellDirectory
from statesvc.cli.cell_databases import address_of
from statesvc.cli.output import write_json, write_line, write_table
from statesvc.cli.session import connect
from statesvc.health.finding import Urgency

_RANKS: Final = {"away": 0, **{urgency.label: rank for rank, urgency in enumerate(Urgency, 1)}}


@dataclass(frozen=True, slots=True)
class CellStatus:
    """Status of a cell; without a `status` its database did not answer, and `why` says how."""

    name: str
    status: ServiceStatus | None
    why: str = ""

    @property
    def mark(self) -> str:
        """The worst that it has."""
        if self.status is None:
            return "away"
        return min(
            (trouble.urgency.label for trouble in self.status.troubles),
            key=_RANKS.__getitem__,
            default="ok",
        )

    @property
    def needs_human(self) -> bool:
        """True if a person has to look there."""
        return self.status is None or self.status.needs_human


async def read_cells(directory: CellDirectory) -> list[CellStatus]:
    """Read the cells' statuses, the worst first. Raises CommandError where a variable is not set."""
    dsns = {name: address_of(directory, name) for name in directory.cells}
    found = await asyncio.gather(*(_read(name, dsn) for name, dsn in dsns.items()))
    return sorted(found, key=lambda cell: _RANKS[cell.mark])


async def _read(name: str, dsn: str | None) -> CellStatus:
    if dsn is None:
        return CellStatus(name, None, "the directory does not name its database")
    try:
        async with await connect(dsn) as connection:
            return CellStatus(name, await read_status(connection))
    except psycopg.Error as error:
        return CellStatus(
            name, None, f"its database does not answer as it should ({type(error).__name__})"
        )


def show_cells(cells: Iterable[CellStatus]) -> None:
    """Show the cells for people."""
    listed = list(cells)
    write_table(
        ("CELL", "", "READY", "OLDEST", "OUTBOX", "DEAD LETTERS", "PROCESSES", "GB"),
        [_row(cell) for cell in listed],
    )
    lines: list[tuple[str, str, str, str | None]] = [
        (cell.name, "away", cell.why, None) for cell in listed if cell.status is None
    ]
    for cell in listed:
        for trouble in () if cell.status is None else cell.status.troubles:
            page = None if trouble.page is None else f"docs/runbook/{trouble.page}.md"
            lines.append(
                (cell.name, trouble.urgency.label, f"{trouble.about}: {trouble.text}", page)
            )
    if lines:
        write_line("")
        write_table(("CELL", "", "", "SEE"), lines)


def write_cells(cells: Iterable[CellStatus]) -> None:
    """Write the cells for scripts."""
    listed = list(cells)
    write_json(
        {
            "needs_human": any(cell.needs_human for cell in listed),
            "cells": {
                cell.name: {"why": cell.why} if cell.status is None else shown_status(cell.status)
                for cell in listed
            },
        }
    )


def _row(cell: CellStatus) -> tuple[Any, ...]:
    if cell.status is None:
        return (cell.name, cell.mark, None, None, None, None, None, None)
    queue: Mapping[str, Any] = cell.status.queue
    lanes = list(queue["carriers"].values())
    oldest = max(
        (
            lane["oldest_ready_seconds"]
            for lane in lanes
            if lane["oldest_ready_seconds"] is not None
        ),
        default=None,
    )
    return (
        cell.name,
        cell.mark,
        sum(lane["ready"] for lane in lanes),
        None if oldest is None else duration(oldest),
        sum(queue["outbox"].values()),
        queue["dead_letters"],
        sum(count for _, count in cell.status.sample.processes),
        f"{cell.status.sample.size_bytes / 1e9:,.2f}",
    )
