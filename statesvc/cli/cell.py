"""`statesvc cell list | status | add | assign | check | proxy | keys | move`: the directory, and what must be alike in all cells."""

import argparse
import asyncio
import re
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from events.carriers import CARRIERS
from statesvc.cells.cell_move import check_standby, move_server
from statesvc.cells.directory import (
    CELL_NAME,
    CellDirectory,
    DirectoryError,
    change_directory,
    checked_directory,
    read_directory,
)
from statesvc.cells.proxies import envoy_configuration, nginx_configuration
from statesvc.cli.arguments import carrier_named
from statesvc.cli.cell_check import check_cells
from statesvc.cli.cell_databases import address_in, all_databases
from statesvc.cli.cell_status import read_cells, show_cells, write_cells
from statesvc.cli.command_error import CommandError
from statesvc.cli.output import write_answer, write_json, write_line, write_table
from statesvc.cli.session import actor
from statesvc.health.finding import Urgency
from statesvc.http.keys.key_store import copy, read_all
from statesvc.settings.service_settings import load_settings
from statesvc.subscriptions.key_revocation import revoke_key

PROXIES = {"nginx": nginx_configuration, "envoy": envoy_configuration}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--file",
        type=Path,
        metavar="FILE",
        help="the directory of cells (default: STATESVC_CELLS_FILE)",
    )
    commands = parser.add_subparsers(dest="what", required=True)
    listing = commands.add_parser("list", help="the cells, and which carriers are where")
    listing.add_argument("--json", action="store_true", help="for scripts")
    status = commands.add_parser(
        "status",
        help="what waits in each cell, and what needs a human there; exit 1 if anything does",
    )
    status.add_argument("--json", action="store_true", help="for scripts")
    adding = commands.add_parser(
        "add", help="add a cell; the first one makes the file and is the default cell"
    )
    adding.add_argument("cell", type=_cell_name, help="small letters, digits and hyphens")
    adding.add_argument(
        "--url",
        required=True,
        action="append",
        help="http://host:port of its API; may stand more than once",
    )
    adding.add_argument(
        "--database",
        metavar="VARIABLE",
        help="environment variable that holds the address of its database",
    )
    adding.add_argument("--json", action="store_true", help="for scripts")
    assigning = commands.add_parser("assign", help="map a carrier that has no data yet to a cell")
    assigning.add_argument("carrier", help="a carrier_id")
    assigning.add_argument("cell", help="a cell of the directory")
    assigning.add_argument("--json", action="store_true", help="for scripts")
    checking = commands.add_parser(
        "check",
        help="doctor for all cells: whether they answer, are well, and agree with the directory",
    )
    checking.add_argument("--json", action="store_true", help="for scripts")
    proxy = commands.add_parser(
        "proxy", help="print the configuration of a proxy that routes by carrier"
    )
    proxy.add_argument("kind", choices=sorted(PROXIES))
    proxy.add_argument(
        "--port",
        type=int,
        default=8080,
        help="port that the proxy listens on (default: %(default)s)",
    )
    spreading = commands.add_parser(
        "keys",
        help="copy API keys to the cells that lack them, and revoke everywhere what is revoked anywhere",
    )
    spreading.add_argument("--json", action="store_true", help="for scripts")
    _configure_move(
        commands.add_parser("move", help="a standby of the cell takes its primary's place")
    )


def run(options: argparse.Namespace) -> int:
    file = options.file or load_settings().cells.file
    if file is None:
        raise CommandError(
            "no directory of cells: set STATESVC_CELLS_FILE or give --file", exit_code=2
        )
    match options.what:
        case "list":
            _list(read_directory(file), as_json=options.json)
        case "status":
            cells = asyncio.run(read_cells(read_directory(file)))
            (write_cells if options.json else show_cells)(cells)
            return 1 if any(cell.needs_human for cell in cells) else 0
        case "add":
            _add(file, options)
        case "assign":
            carrier_id = carrier_named(options.carrier).carrier_id
            changed = change_directory(
                file, lambda known: _present(known, file).assigning(carrier_id, options.cell)
            )
            document = {"carrier_id": carrier_id, "cell": options.cell, "epoch": changed.epoch}
            write_answer(
                f"{carrier_id} belongs to {options.cell} in epoch {changed.epoch}; {_WHAT_NEXT}",
                document,
                as_json=options.json,
            )
        case "check":
            return _check(read_directory(file), as_json=options.json)
        case "proxy":
            write_line(PROXIES[options.kind](read_directory(file), port=options.port).rstrip())
        case "move":
            _move(file, options)
        case _:
            _write_spread(asyncio.run(spread_keys(read_directory(file))), as_json=options.json)
    return 0


_WHAT_NEXT = "make the proxy's configuration anew and reload it"


def _list(directory: CellDirectory, *, as_json: bool) -> None:
    if as_json:
        write_json(directory.model_dump(mode="json"))
        return
    others = len(set(CARRIERS) - set(directory.carriers))
    write_table(
        ("CELL", "URLS", "DATABASE", "CARRIERS"),
        [
            (
                name,
                " ".join(cell.urls),
                cell.database,
                " ".join(
                    [
                        *directory.carriers_of(name),
                        *([f"and {others} others"] if name == directory.default else []),
                    ]
                )
                or None,
            )
            for name, cell in directory.cells.items()
        ],
    )
    write_line(
        f"epoch {directory.epoch}; what the directory does not name is in {directory.default}"
    )


def _add(file: Path, options: argparse.Namespace) -> None:
    def added(known: CellDirectory | None) -> CellDirectory:
        members = {"urls": options.url, "database": options.database}
        if known is None:
            return checked_directory(
                {"epoch": 1, "default": options.cell, "cells": {options.cell: members}}, str(file)
            )
        return known.adding(options.cell, members)

    changed = change_directory(file, added)
    document = {"cell": options.cell, "file": str(file), "epoch": changed.epoch}
    write_answer(
        f"{options.cell} is in {file}, epoch {changed.epoch}; {_WHAT_NEXT}",
        document,
        as_json=options.json,
    )


def _check(directory: CellDirectory, *, as_json: bool) -> int:
    findings = asyncio.run(check_cells(directory))
    if as_json:
        write_json(
            [
                {"severity": finding.urgency.value, "about": finding.about, "text": finding.text}
                for finding in findings
            ]
        )
    else:
        for finding in findings:
            write_line(f"{finding.urgency.value:4}  {finding.about}: {finding.text}")
    return 1 if any(finding.urgency is Urgency.NOW for finding in findings) else 0


def _configure_move(moving: argparse.ArgumentParser) -> None:
    moving.add_argument("cell", help="a cell of the directory")
    moving.add_argument(
        "--primary",
        required=True,
        metavar="VARIABLE",
        help="environment variable with a superuser's address of its server",
    )
    moving.add_argument(
        "--standby",
        required=True,
        metavar="VARIABLE",
        help="the same of the standby that is to be promoted",
    )
    moving.add_argument(
        "--url", action="append", help="http://host:port of its API afterwards (default: as before)"
    )
    moving.add_argument(
        "--database",
        metavar="VARIABLE",
        help="environment variable with its database's address afterwards (default: as before)",
    )
    moving.add_argument(
        "--seconds",
        type=float,
        default=5.0,
        help="longest time without writes before it is called off (default: %(default)g)",
    )
    moving.add_argument(
        "--dry-run", action="store_true", help="only say whether the standby could take over now"
    )
    moving.add_argument("--json", action="store_true", help="for scripts")


def _move(file: Path, options: argparse.Namespace) -> None:
    primary, standby = address_in(options.primary), address_in(options.standby)
    members = {
        name: value
        for name, value in (("urls", options.url), ("database", options.database))
        if value is not None
    }
    # what is wrong with the directory shows before anything is fenced
    read_directory(file).moving(options.cell, members)
    if options.dry_run:
        behind = asyncio.run(check_standby(primary, standby))
        sentence = (
            f"the standby is {behind:,} bytes behind and could take over; nothing was changed"
        )
        write_answer(sentence, {"cell": options.cell, "behind_bytes": behind}, as_json=options.json)
        return
    moved = asyncio.run(move_server(primary, standby, fenced_seconds_max=options.seconds))
    document: dict[str, Any] = {"cell": options.cell, **asdict(moved)}
    if not options.json:
        # before the directory is changed, which may fail
        write_line(
            f"{options.cell} has moved: nothing was written for {moved.gap_seconds:.2f} s; the old server only reads from now on"
        )
    if members:
        changed = change_directory(
            file, lambda known: _present(known, file).moving(options.cell, members)
        )
        document["epoch"] = changed.epoch
        if not options.json:
            write_line(f"{file} is in epoch {changed.epoch}; {_WHAT_NEXT}")
    if options.json:
        write_json(document)


def _present(known: CellDirectory | None, file: Path) -> CellDirectory:
    if known is None:
        raise DirectoryError(f"{file} does not exist: `statesvc cell add` makes it")
    return known


def _cell_name(text: str) -> str:
    if not re.fullmatch(CELL_NAME, text):
        raise argparse.ArgumentTypeError(
            "a cell's name has at most 31 small letters, digits and hyphens, and begins with one of the first"
        )
    return text


class SpreadKeys(NamedTuple):
    """Keys that a cell got, that were revoked there, and that are good in all cells."""

    copied: int
    revoked: int
    good: int


def _write_spread(spread: Mapping[str, SpreadKeys], *, as_json: bool) -> None:
    if as_json:
        write_json({cell: keys._asdict() for cell, keys in spread.items()})
        return
    for cell, keys in spread.items():
        write_line(f"{cell}: {keys.copied} copied, {keys.revoked} revoked, {keys.good} good in all")


async def spread_keys(directory: CellDirectory) -> dict[str, SpreadKeys]:
    """Make the same keys good in all cells: copy live ones, revoke everywhere what is revoked anywhere. Return what was done in each.

    Each cell's part is its own transactions: cut short, it is called again. Raises CommandError.
    """
    done: dict[str, SpreadKeys] = {}
    async with all_databases(directory) as databases:
        stored = {name: await read_all(connection) for name, connection in databases.items()}
        revoked = {key.key_id for keys in stored.values() for key in keys if key.is_revoked}
        good = {
            key.key_id: key for keys in stored.values() for key in keys if key.key_id not in revoked
        }
        for name, connection in databases.items():
            copied = [
                key.key_id for key in good.values() if await copy(connection, key, actor=actor())
            ]
            ended = [
                key.key_id for key in stored[name] if key.key_id in revoked and not key.is_revoked
            ]
            for key_id in ended:
                await revoke_key(connection, key_id=key_id, revoked_by=actor())
            done[name] = SpreadKeys(len(copied), len(ended), len(good))
    return done
