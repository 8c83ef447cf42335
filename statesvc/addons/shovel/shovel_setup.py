"""Setup of the runs of `statesvc shovel`, from the options, checked before anything is taken."""

import argparse
import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

from events.carriers import CARRIERS
from events.crypto.keyring import Keyring
from statesvc.addons.shovel.backup import check_folder
from statesvc.addons.shovel.source_message import ShovelError, Source, SourceLostError
from statesvc.addons.shovel.sources import BackupSource, is_endless, make_source
from statesvc.addons.shovel.task_mapping import TaskMapping, parse_mapping
from statesvc.cli.command_error import CommandError
from statesvc.cli.session import connect, require_migrated, running_database
from statesvc.database.keyring_store import load_keyring
from statesvc.database.pool import Pool, PoolLimits, make_pool
from statesvc.roles.master_key import open_master_keys
from statesvc.settings.service_settings import Settings

_LIMITS: Final = PoolLimits(
    connections_max=2,
    connections_min=1,
    acquire_seconds=5,
    statement_seconds=60,
    lock_seconds=20,
    idle_in_transaction_seconds=30,
)


def read_mapping(options: argparse.Namespace) -> TaskMapping:
    """Read the mapping.

    Raises CommandError where there is no such file, ShovelError where it is wrong.
    """
    if options.mapping is None:
        raise CommandError("name the mapping: --mapping FILE", exit_code=2)
    try:
        text = options.mapping.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(
            f"the mapping {options.mapping} can't be read: {error}", exit_code=2
        ) from None
    return parse_mapping(
        text, name=options.mapping.name, carriers=CARRIERS, notify=not options.no_notify
    )


async def checked_source(options: argparse.Namespace) -> Source:
    """Return the source, after everything else that is named was found right."""
    read_mapping(options)
    if options.backup is None:
        raise CommandError("name a folder for the backup: --backup DIR", exit_code=2)
    if options.restore:
        if options.source is not None:
            raise CommandError("--restore takes from the backup: leave out --from", exit_code=2)
        return source_of(options)
    check_folder(options.backup)
    async with opened_source(options) as source:
        return source


def source_of(options: argparse.Namespace) -> Source:
    """Return the source, unopened."""
    if options.restore:
        return BackupSource(options.backup)
    if options.source is None:
        raise CommandError("name the source: --from URL", exit_code=2)
    return make_source(
        broker_url(options.source),
        queues=options.queue,
        delayed=options.delayed,
        prefetch=options.prefetch or 2 * options.batch,
    )


def goes_on(options: argparse.Namespace) -> bool:
    """Return whether more may come: a file, or a backup, is read once."""
    return not options.restore and is_endless(broker_url(options.source))


@asynccontextmanager
async def opened_source(options: argparse.Namespace) -> AsyncIterator[Source]:
    """Open the source, which answers and has its queues. Raises ShovelError."""
    source = source_of(options)
    try:
        try:
            await source.open()
        except SourceLostError as error:
            raise ShovelError(str(error)) from None
        yield source
    finally:
        await source.close()


def broker_url(given: str) -> str:
    """Return the URL, from the environment if it is given there.

    A password among the arguments shows in the list of processes.
    """
    name = given.removeprefix("env:")
    if name == given:
        return given
    if name not in os.environ:
        raise CommandError(f"the environment has no variable {name}", exit_code=2)
    return os.environ[name].strip()


@asynccontextmanager
async def database(settings: Settings) -> AsyncIterator[tuple[Pool, Keyring]]:
    """Open a pool of the service's role on a schema that is up to date, and the keys."""
    async with running_database(settings) as dsns:
        async with await connect(dsns.service, direct=not dsns.is_pooled) as connection:
            await require_migrated(connection)
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


def stop_event() -> asyncio.Event:
    """Set by SIGTERM, Ctrl-C and a terminal that closes: the batch at hand is ended first."""
    stop = asyncio.Event()
    with suppress(RuntimeError, ValueError):  # only the main thread hears signals
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop
