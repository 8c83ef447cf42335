"""`statesvc spool list | drain`: messages that were acknowledged before the database had them."""

import argparse
import asyncio
import time
from typing import Final

import psycopg

from statesvc.background.duration import duration
from statesvc.cli.command_error import CommandError
from statesvc.cli.output import write_json, write_line, write_table
from statesvc.database.dsns import Dsns
from statesvc.database.wakeups.wakeup import connect_direct
from statesvc.roles.runtime import require_database
from statesvc.settings.service_settings import Settings, load_settings
from statesvc.spool.drainer import Drainer, ServerClock
from statesvc.spool.spool_state import read_spools
from statesvc.spool.spooling import open_spool

_CONNECT_SECONDS: Final = 10.0


def configure(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    listing = verbs.add_parser("list", help="list the spools that the database knows")
    draining = verbs.add_parser(
        "drain",
        help="store the messages of the spool in STATESVC_SPOOL_URL without an ingress",
    )
    for parser_of_verb in (listing, draining):
        parser_of_verb.add_argument("--json", action="store_true", help="for scripts")


def run(options: argparse.Namespace) -> int:
    settings = load_settings()
    dsns = require_database(settings.database)
    try:
        if options.verb == "list":
            return asyncio.run(_list(dsns, as_json=options.json))
        return asyncio.run(_drain(settings, dsns, as_json=options.json))
    except psycopg.OperationalError as error:
        raise CommandError(
            f"the database does not answer: {error}\nmeanwhile statesvc_spool_messages and"
            " statesvc_spool_oldest_seconds on /metrics of ingress show what waits"
        ) from None


async def _list(dsns: Dsns, *, as_json: bool) -> int:
    async with await connect_direct(dsns.listen, application_name="statesvc spool") as connection:
        spools = await read_spools(connection)
    if as_json:
        write_json([spool._asdict() for spool in spools])
    elif not spools:
        write_line("no spool")
    else:
        head = ("SPOOL", "MESSAGES", "BYTES", "OLDEST", "SET ASIDE", "DRAINED")
        write_table(
            head,
            [
                (
                    spool.name,
                    f"{spool.messages:,}",
                    f"{spool.bytes:,}",
                    "" if spool.seconds is None else duration(spool.seconds),
                    f"{spool.set_aside:,}",
                    f"{duration(spool.unseen_seconds)} ago",
                )
                for spool in spools
            ],
        )
    return 0


async def _drain(settings: Settings, dsns: Dsns, *, as_json: bool) -> int:
    if settings.spool.url is None:
        raise CommandError("STATESVC_SPOOL_URL is not set: there is no spool")
    try:
        spool = await open_spool(settings.spool.url, settings.spool)
    except (ImportError, OSError, ValueError) as error:
        raise CommandError(f"STATESVC_SPOOL_URL: {error}") from error
    drainer = Drainer(spool, ServerClock(), dsn=dsns.listen)
    try:
        # servers are connected to meanwhile, and have no source before that
        deadline = time.monotonic() + _CONNECT_SECONDS
        while not await spool.sources():
            if time.monotonic() > deadline:
                raise CommandError(f"nothing was drained: {spool.refusal()}")
            await asyncio.sleep(0.05)
        spool.end()
        await drainer.drain_all()
    except psycopg.Error:
        raise
    except OSError as error:
        raise CommandError(f"the spool cannot be read: {error}") from error
    finally:
        await drainer.disconnect()
        await spool.close()
    if as_json:
        write_json({"stored": drainer.stored})
    else:
        write_line(f"stored {drainer.stored:,} messages; an ingress that runs drains its own")
    return 0
