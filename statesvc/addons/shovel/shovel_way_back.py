"""`statesvc shovel --to URL --backup DIR [--restore]`: back to the broker what was not processed, or all of it."""

import argparse
from dataclasses import asdict

from statesvc.addons.shovel.backup import backup_files
from statesvc.addons.shovel.broker_publisher import BrokerPublisher, make_publisher
from statesvc.addons.shovel.shovel_setup import broker_url, database, stop_event
from statesvc.addons.shovel.source import ShovelError, SourceLostError
from statesvc.addons.shovel.way_back import Returned, WayBack, restore
from statesvc.cli.command_error import CommandError
from statesvc.cli.output import end_progress, show_progress, write_json, write_line
from statesvc.cli.session import actor
from statesvc.settings.service_settings import load_settings


async def give_back(options: argparse.Namespace) -> int:
    """Give back. Raises CommandError for wrong use, ShovelError for what is found wrong."""
    if options.source is not None:
        raise CommandError("what is returned comes from the backup: leave out --from", exit_code=2)
    if options.backup is None:
        raise CommandError("name the folder of the backup: --backup DIR", exit_code=2)
    backup_files(options.backup)
    publisher = make_publisher(broker_url(options.to))
    try:
        await publisher.open()
        if options.restore:
            return await _restore(options, publisher)
        return await _give_back(options, publisher)
    except SourceLostError as error:
        raise ShovelError(
            f"{error}. Run the same command again: it goes on where it ended"
        ) from None
    finally:
        await publisher.close()


async def _restore(options: argparse.Namespace, publisher: BrokerPublisher) -> int:
    if options.dry_run:
        raise CommandError("a restore publishes everything: it has no --dry-run", exit_code=2)
    stop = stop_event()
    done = await restore(
        options.backup,
        publisher,
        batch_max=options.batch,
        stopping=stop.is_set,
        report=lambda done: show_progress(done, done, "messages", goes_on=True),
    )
    end_progress()
    if options.json:
        write_json({"restored": done})
    else:
        write_line(f"{done:,} messages restored")
    return 1 if stop.is_set() else 0


async def _give_back(options: argparse.Namespace, publisher: BrokerPublisher) -> int:
    stop = stop_event()
    async with database(load_settings()) as (pool, keyring):
        way_back = WayBack(
            backup=options.backup,
            publisher=publisher,
            pool=pool,
            keyring=keyring,
            actor=actor(),
            batch_max=options.batch,
            stopping=stop.is_set,
            report=lambda totals: show_progress(
                totals.returned, totals.returned, "messages returned", goes_on=True
            ),
        )
        totals = await way_back.give_back(dry_run=options.dry_run)
    end_progress()
    if options.json:
        write_json(asdict(totals))
    else:
        _write(totals, dry_run=options.dry_run)
    return 1 if stop.is_set() or totals.busy else 0


def _write(totals: Returned, *, dry_run: bool) -> None:
    would = "would be returned" if dry_run else "returned"
    write_line(
        f"{totals.returned + totals.again:,} {would}; {totals.processed:,} were processed here and stay"
    )
    if totals.again:
        write_line(
            f"{totals.again:,} of them had been on their way when an earlier run ended: the broker may have them twice, under one task id"
        )
    if totals.busy:
        write_line(
            f"{totals.busy:,} are in workers' hands now: hold their carriers (`statesvc rollout hold`) and run this again"
        )
    if totals.elsewhere:
        write_line(
            f"{totals.elsewhere:,} are of another kind of broker, or wait at their source still"
        )
