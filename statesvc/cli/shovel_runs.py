"""What `statesvc shovel` does once its options are read: check everything first, then run."""

import argparse
import asyncio
import logging
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Final

from events.carriers import CARRIERS
from events.crypto.keyring import Keyring
from statesvc.cli.command_error import CommandError
from statesvc.cli.output import write_json, write_line
from statesvc.cli.session import connect, running_database
from statesvc.database.keyring_store import load_keyring
from statesvc.database.migration_files import compare, read_migrations
from statesvc.database.migrator import read_ledger
from statesvc.database.pool import Pool, PoolLimits, make_pool
from statesvc.roles.master_key import open_master_keys
from statesvc.settings.service_settings import Settings, load_settings
from statesvc.shovel.backup import BackupWriter, check_folder
from statesvc.shovel.shovel_error import ShovelError, SourceLostError
from statesvc.shovel.source import Source
from statesvc.shovel.sources import make_source
from statesvc.shovel.task_mapping import TaskMapping, parse_mapping
from statesvc.shovel.transfer import Pace, TransferTask, TransferTotals, transfer

_LIMITS: Final = PoolLimits(
    connections_max=2, connections_min=1, acquire_seconds=5, statement_seconds=60, lock_seconds=20, idle_in_transaction_seconds=30
)


def run(options: argparse.Namespace) -> int:
    """Raises CommandError for wrong use, ShovelError for what is found wrong."""
    # what goes wrong with a broker is said in our words
    for client in ("aiormq", "aio_pika"):
        logging.getLogger(client).setLevel(logging.CRITICAL)
    return asyncio.run(_take(options))


async def _take(options: argparse.Namespace) -> int:
    if options.source is None or options.mapping is None or options.backup is None:
        raise CommandError("name a source, a mapping and a folder for the backup: --from, --mapping, --backup", exit_code=2)
    mapping = read_mapping(options.mapping)
    check_folder(options.backup)
    source = await open_checked(options)
    stop = asyncio.Event()
    with suppress(RuntimeError, ValueError):  # only the main thread hears signals
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with database(load_settings()) as (pool, keyring):
        totals = await transfer(
            TransferTask(
                source=source,
                mapping=mapping,
                pool=pool,
                keyring=keyring,
                backup=BackupWriter(options.backup),
                backup_folder=options.backup,
                batch_max=options.batch,
                until_empty=options.until_empty,
                pace=Pace(None),
                stopping=stop.is_set,
                report=lambda _totals: None,
                notice=write_line,
            )
        )
    _write(totals, as_json=options.json)
    return 0


def read_mapping(path: Path) -> TaskMapping:
    """Raises CommandError where there is no such file, ShovelError where it is wrong."""
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"the mapping {path} can't be read: {error}", exit_code=2) from None
    return parse_mapping(text, name=path.name, carriers=CARRIERS)


async def open_checked(options: argparse.Namespace) -> Source:
    """The source, which was found to answer and to have its queues. Raises ShovelError."""
    source = await make_source(options.source, options.queue, delayed=options.delayed, prefetch=options.prefetch or 2 * options.batch)
    try:
        await source.open()
    except SourceLostError as error:
        raise ShovelError(str(error)) from None
    finally:
        await source.close()
    return source


@asynccontextmanager
async def database(settings: Settings) -> AsyncIterator[tuple[Pool, Keyring]]:
    """A pool of the service's role on a schema that is up to date, and the keys."""
    async with running_database(settings) as dsns:
        async with await connect(dsns.service) as connection:
            pending = compare(read_migrations(), await read_ledger(connection)).pending
            if pending:
                raise CommandError(f"migrations are pending ({', '.join(each.label for each in pending)}): run `statesvc migrate`")
            keyring = await load_keyring(connection, await open_master_keys(settings, connection))
        pool = make_pool(
            dsns.service,
            name="statesvc shovel",
            limits=_LIMITS,
            prepared_statements=settings.database.prepared_statements,
            direct=not dsns.is_pooled,
        )
        async with pool:
            yield pool, keyring


def _write(totals: TransferTotals, *, as_json: bool) -> None:
    if as_json:
        write_json(asdict(totals))
        return
    write_line(
        f"{totals.taken:,} taken: {totals.moved:,} into the inbox, {totals.dead_letters:,} to the dead letters, "
        f"{totals.known:,} were there already"
    )
