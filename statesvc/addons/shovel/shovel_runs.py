"""Runs of `statesvc shovel` once its options are read: check everything first, then run."""

import argparse
import asyncio
import logging
import sys
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict
from datetime import UTC, datetime
from typing import NamedTuple

from statesvc.addons.shovel.backup import BackupWriter, backup_files
from statesvc.addons.shovel.broker_publisher import BrokerPublisher, make_publisher
from statesvc.addons.shovel.inbox_store import StoredMessages
from statesvc.addons.shovel.shovel_setup import (
    broker_url,
    checked_source,
    database,
    goes_on,
    opened_source,
    read_mapping,
    stop_event,
)
from statesvc.addons.shovel.source_message import ShovelError, SourceLostError, Taken
from statesvc.addons.shovel.task_mapping import Mapped, TaskMapping, Unmapped
from statesvc.addons.shovel.transfer import TransferTask, transfer
from statesvc.addons.shovel.way_back import Returned, WayBack, restore
from statesvc.cli.command_error import CommandError
from statesvc.cli.output import end_progress, show_progress, write_json, write_line, write_table
from statesvc.cli.session import actor
from statesvc.settings.service_settings import load_settings


def run(options: argparse.Namespace) -> int:
    """Run the shovel. Raises CommandError for wrong use, ShovelError for other faults."""
    # what goes wrong with a broker is said in our words
    for client in ("aiormq", "aio_pika"):
        logging.getLogger(client).setLevel(logging.CRITICAL)
    if options.to is not None:
        return asyncio.run(_return(options))
    if options.dry_run:
        return asyncio.run(_dry_run(options))
    if options.processes is not None:
        _say("--processes is ignored: one process takes the messages")
    return asyncio.run(_take(options))


async def _dry_run(options: argparse.Namespace) -> int:
    mapping = read_mapping(options)
    async with opened_source(options) as source:
        waiting = await source.waiting()
        messages = await source.sample(options.sample)
    counted = classify(messages, mapping, now=datetime.now(UTC))
    if options.json:
        write_json(
            {
                "waiting": waiting,
                "unacknowledged": None,
                "classified": len(messages),
                "classes": [
                    {**kind._asdict(), "at": "queue", "messages": count}
                    for kind, count in counted.most_common()
                ],
            }
        )
        return 0
    write_line(f"{waiting:,} messages wait, {len(messages):,} were classified, nothing was taken")
    if counted:
        write_table(
            ("QUEUE", "TASK", "BECOMES", "DUE", "MESSAGES"),
            [(*kind, f"{count:,}") for kind, count in counted.most_common()],
        )
    return 0


async def _take(options: argparse.Namespace) -> int:
    source = await checked_source(options)
    stop = stop_event()
    began = time.monotonic()

    def show(totals: StoredMessages) -> None:
        rate = totals.taken / max(time.monotonic() - began, 1.0)
        show_progress(totals.taken, totals.taken, f"messages, {rate:,.0f}/s", goes_on=True)

    try:
        async with database(load_settings()) as (pool, keyring):
            totals = await transfer(
                TransferTask(
                    source=source,
                    mapping=read_mapping(options),
                    pool=pool,
                    keyring=keyring,
                    backup=None if options.restore else BackupWriter(options.backup),
                    actor=actor(),
                    batch_max=options.batch,
                    until_empty=options.until_empty or not goes_on(options),
                    per_second=options.rate,
                    stop=stop,
                    report=show,
                    notice=_say,
                )
            )
    finally:
        end_progress()
    _write(totals, as_json=options.json)
    return 0


def _say(text: str) -> None:
    sys.stderr.write(f"statesvc: {text}\n")


def _write(totals: StoredMessages, *, as_json: bool) -> None:
    if as_json:
        write_json({**asdict(totals), "reused_ids": 0})
        return
    write_line(
        f"{totals.taken:,} taken: {totals.moved:,} into the inbox, {totals.dead_letters:,} to the"
        f" dead letters, {totals.known:,} were there already"
    )


async def _return(options: argparse.Namespace) -> int:
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
        _write_returned(totals, dry_run=options.dry_run)
    return 1 if stop.is_set() or totals.busy else 0


def _write_returned(totals: Returned, *, dry_run: bool) -> None:
    would = "would be returned" if dry_run else "returned"
    write_line(
        f"{totals.returned + totals.again:,} {would}; {totals.processed:,} were processed here and"
        " stay"
    )
    if totals.again:
        write_line(
            f"{totals.again:,} of them had been on their way when an earlier run ended: the broker"
            " may have them twice, under one task id"
        )
    if totals.busy:
        write_line(
            f"{totals.busy:,} are in workers' hands now: hold their carriers (`statesvc rollout"
            " hold`) and run this again"
        )
    if totals.elsewhere:
        write_line(
            f"{totals.elsewhere:,} are of another kind of broker, or wait at their source still"
        )


class Class(NamedTuple):
    """A line of a dry run. `due`: now, later, or empty for an unmapped message."""

    queue: str
    task: str
    becomes: str
    due: str


def classify(messages: Iterable[Taken], mapping: TaskMapping, *, now: datetime) -> Counter[Class]:
    """Count the messages of each kind."""
    counted: Counter[Class] = Counter()
    for taken in messages:
        found = mapping.classify(taken, now=now)
        name = "" if found.task is None else found.task.name
        if isinstance(found, Mapped):
            is_later = found.task.eta is not None and found.task.eta > now
            becomes, due = found.carrier_id, "later" if is_later else "now"
        else:
            becomes, due = f"{_fate(found, mapping)}: {found.detail}", ""
        counted[Class(taken.queue, name, becomes, due)] += 1
    return counted


def _fate(found: Unmapped, mapping: TaskMapping) -> str:
    return "stops the transfer" if mapping.refuses(found) else "dead letter"
