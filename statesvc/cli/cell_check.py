"""`statesvc cell check`: doctor for all cells: whether they answer, are well, hold what the directory says, and agree where they must."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import aiohttp
import psycopg
from psycopg import AsyncConnection

from events.carriers import CARRIERS
from statesvc.cells.directory import CellDirectory
from statesvc.cli.cell_databases import address_of
from statesvc.cli.doctor.checks import check_database
from statesvc.cli.session import connect
from statesvc.database.migration_files import compare, read_migrations
from statesvc.database.migrator import read_ledger
from statesvc.database.queries import queries
from statesvc.health.finding import Finding, fail, ok, warn

_SQL: Final = queries("statesvc.cli", "cell_check")
_ANSWER: Final = aiohttp.ClientTimeout(total=10)


@dataclass(frozen=True, slots=True)
class _Contents:
    """Contents of a cell's database."""

    carriers: Sequence[str]
    origins: frozenset[str]
    keys: frozenset[str]
    subscriptions: frozenset[str]
    pending: Sequence[str]


async def check_cells(directory: CellDirectory) -> list[Finding]:
    """Check cell by cell, then across them. Raises CommandError where a variable is not set."""
    dsns = {name: address_of(directory, name) for name in directory.cells}
    async with aiohttp.ClientSession(timeout=_ANSWER) as client:
        urls = [(name, url) for name, cell in directory.cells.items() for url in cell.urls]
        findings = list(await asyncio.gather(*(_answers(client, name, url) for name, url in urls)))
    contents: dict[str, _Contents] = {}
    for name, dsn in dsns.items():
        if dsn is None:
            findings.append(
                warn(name, "its database is not in the directory: only that it answers was checked")
            )
            continue
        try:
            async with await connect(dsn) as connection:
                contents[name] = await _read(connection)
                if not contents[name].pending:
                    findings += [
                        _about_cell(name, finding) async for finding in check_database(connection)
                    ]
        except psycopg.Error as error:
            findings.append(
                fail(name, f"its database does not answer as it should ({type(error).__name__})")
            )
    return [*findings, *compared(directory, contents)]


def _about_cell(name: str, finding: Finding) -> Finding:
    """Return doctor's finding with the name of the cell."""
    return replace(finding, about=f"{name}: {finding.about}")


async def _answers(client: aiohttp.ClientSession, name: str, url: str) -> Finding:
    try:
        async with client.get(f"{url}/readyz") as response:
            answer: Any = await response.json(content_type=None)
    except (aiohttp.ClientError, TimeoutError, ValueError) as error:
        return fail(name, f"{url} does not answer ({type(error).__name__})")
    if response.status == 200:
        return ok(name, f"{url} is ready")
    reasons = answer.get("reasons") if isinstance(answer, dict) else None
    return fail(
        name, f"{url} is not ready: {'; '.join(map(str, reasons or ['it gives no reason']))}"
    )


async def _read(connection: AsyncConnection[Any]) -> _Contents:
    pending = [
        each.label for each in compare(read_migrations(), await read_ledger(connection)).pending
    ]
    carriers = await (
        await connection.execute(_SQL["carriers_here"], {"carriers": sorted(CARRIERS)})
    ).fetchall()
    origins = await (await connection.execute(_SQL["log_origins"])).fetchall()
    keys = await (await connection.execute(_SQL["live_keys"])).fetchall()
    subscriptions = await (await connection.execute(_SQL["live_subscriptions"])).fetchall()
    return _Contents(
        [carrier for (carrier,) in carriers],
        frozenset(origin for (origin,) in origins),
        frozenset(key for (key,) in keys),
        frozenset(one for (one,) in subscriptions),
        pending,
    )


def compared(directory: CellDirectory, contents: Mapping[str, _Contents]) -> list[Finding]:
    """Return where the databases contradict the directory, or each other."""
    findings: list[Finding] = []
    for name, found in contents.items():
        if found.pending:
            findings.append(
                fail(
                    name,
                    f"migrations are pending ({', '.join(found.pending)}): run `statesvc migrate` there",
                )
            )
        strays = [carrier for carrier in found.carriers if directory.cell_of(carrier) != name]
        if strays:
            where = ", ".join(f"{carrier} ({directory.cell_of(carrier)})" for carrier in strays)
            findings.append(
                fail(
                    name,
                    f"it has data of carriers that the directory maps to another cell: {where}",
                )
            )
        else:
            findings.append(ok(name, "it holds no carrier of another cell"))
    return [*findings, *_origins(contents), *_keys(contents), *_subscriptions(contents)]


def _origins(contents: Mapping[str, _Contents]) -> list[Finding]:
    pairs = [(name, origin) for name, found in contents.items() for origin in found.origins]
    owners = {origin: name for name, origin in reversed(pairs)}
    return [
        fail(
            name,
            f"its log has the same origin as the one of {owners[origin]}, {origin}: one is a copy of the other",
        )
        for name, origin in pairs
        if owners[origin] != name
    ]


def _keys(contents: Mapping[str, _Contents]) -> list[Finding]:
    every = frozenset[str]().union(*(found.keys for found in contents.values()))
    return [
        warn(
            name,
            f"{len(every - found.keys)} API keys are good in other cells and not here: `statesvc cell keys` copies them",
        )
        for name, found in contents.items()
        if every - found.keys
    ]


def _subscriptions(contents: Mapping[str, _Contents]) -> list[Finding]:
    """Warn of subscriptions that a cell lacks: one to the carriers of another cell alone may be there alone, the operator knows."""
    every = frozenset[str]().union(*(found.subscriptions for found in contents.values()))
    return [
        warn(
            name,
            f"{len(missing)} subscriptions of other cells are not here ({_few(missing)}): make them by PUT (docs/cells.md)",
        )
        for name, found in contents.items()
        if (missing := sorted(every - found.subscriptions))
    ]


def _few(ids: list[str]) -> str:
    return ", ".join(ids[:3]) + (", ..." if len(ids) > 3 else "")
