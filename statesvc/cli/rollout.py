"""`statesvc rollout show | hold CARRIER|all | release CARRIER|all`: the kill switch. Held messages are kept, not processed."""

import argparse
import asyncio
from typing import Any

from psycopg import AsyncConnection

from events.carriers import CARRIERS
from events.sql.queries import queries
from statesvc.cli.operator import actor
from statesvc.cli.output import write_json, write_line, write_table
from statesvc.cli.refusal import CommandError
from statesvc.cli.session import service_connection
from statesvc.rollouts.dial import ALL, list_rollouts, set_hold
from statesvc.settings import load_settings
from statesvc.wakeup.channels import INBOX

_WAKEUP = queries("statesvc.wakeup", "wakeup")


def configure(parser: argparse.ArgumentParser) -> None:
    """What the commands take."""
    commands = parser.add_subparsers(dest="action", required=True, metavar="show | hold | release")
    show = commands.add_parser("show", help="every dial that was ever touched")
    show.add_argument("--json", action="store_true", help="for scripts")
    for name, summary in (("hold", "keep a carrier's messages, process none"), ("release", "process them again")):
        command = commands.add_parser(name, help=summary)
        command.add_argument("carrier", help="a carrier id, or all")
        command.add_argument("--why", default="", help="stands in the log")


def run(options: argparse.Namespace) -> int:
    """Runs one of them."""
    if options.action != "show" and options.carrier != "all" and options.carrier not in CARRIERS:
        raise CommandError(f"no carrier {options.carrier!r}: `statesvc carriers` lists them", exit_code=2)
    return asyncio.run(_run(options))


async def _run(options: argparse.Namespace) -> int:
    async with service_connection(load_settings()) as connection:
        if options.action == "show":
            await _show(connection, as_json=options.json)
            return 0
        hold = options.action == "hold"
        carrier_id = ALL if options.carrier == "all" else options.carrier
        await set_hold(connection, carrier_id=carrier_id, hold=hold, why=options.why, actor=actor())
        if not hold:
            await connection.execute(_WAKEUP["notify"], {"channels": [INBOX]})
    write_line(f"{options.carrier}: {'held' if hold else 'released'}; in effect at the next claim")
    return 0


async def _show(connection: AsyncConnection[Any], *, as_json: bool) -> None:
    dials = await list_rollouts(connection)
    shown = [
        {
            "carrier": "all" if dial.carrier_id == ALL else dial.carrier_id,
            "hold": dial.hold,
            "candidate": dial.candidate,
            "percent": dial.percent,
            "shadow": dial.shadow,
            "changed_at": dial.changed_at.isoformat(timespec="seconds") if dial.changed_at else None,
            "changed_by": dial.changed_by,
            "why": dial.why,
        }
        for dial in dials
    ]
    if as_json:
        write_json(shown)
    elif shown:
        columns = ("carrier", "hold", "candidate", "percent", "shadow", "changed_at", "changed_by", "why")
        write_table([column.upper() for column in columns], [[dial[column] for column in columns] for dial in shown])
    else:
        write_line("no dial was ever touched: each carrier is read by its stable version")
