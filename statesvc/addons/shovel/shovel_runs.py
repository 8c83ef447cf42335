"""Runs of `statesvc shovel` once its options are read: check everything first, then run."""

import argparse
import asyncio
import logging
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from events.errors import Cause
from statesvc.addons.shovel.backup import BackupWriter, check_folder
from statesvc.addons.shovel.dry_run import classify, explain_message, read_samples
from statesvc.addons.shovel.fleet import NOTICE, REFUSED, Fleet, totals_line
from statesvc.addons.shovel.progress import TransferProgress
from statesvc.addons.shovel.shovel_setup import (
    answering_source,
    checked_source,
    child_command,
    count_waiting,
    database,
    end_with_input,
    goes_on,
    read_mapping,
    source_of,
    stop_event,
)
from statesvc.addons.shovel.shovel_way_back import give_back
from statesvc.addons.shovel.source import ShovelError, Source, SourceLostError, Unacknowledged
from statesvc.addons.shovel.source_message import Taken
from statesvc.addons.shovel.transfer import (
    Pace,
    TransferTask,
    TransferTotals,
    pause,
    resume,
    transfer,
)
from statesvc.cli.command_error import CommandError
from statesvc.cli.output import (
    end_progress,
    show_progress,
    write_json,
    write_json_line,
    write_line,
    write_table,
)
from statesvc.cli.session import actor
from statesvc.settings.service_settings import load_settings

_EXPLAINED: Final = 5
_REPORT_SECONDS: Final = 0.2
_WAITING_SECONDS: Final = 2.0


def run(options: argparse.Namespace) -> int:
    """Run the shovel. Raises CommandError for wrong use, ShovelError for what is found wrong."""
    # what goes wrong with a broker is said in our words
    for client in ("aiormq", "aio_pika"):
        logging.getLogger(client).setLevel(logging.CRITICAL)
    if options.pause or options.resume:
        return _pause(options)
    if options.to is not None:
        return asyncio.run(give_back(options))
    if options.explain is not None or options.dry_run:
        return asyncio.run(_explain(options) if options.explain is not None else _dry_run(options))
    if options.process is not None:
        return asyncio.run(_take_as_child(options))
    return asyncio.run(_take(options) if options.processes == 1 else _take_with_processes(options))


def _pause(options: argparse.Namespace) -> int:
    if options.backup is None:
        raise CommandError("name the folder of the transfer's backup: --backup", exit_code=2)
    if options.pause:
        check_folder(options.backup)
    (pause if options.pause else resume)(options.backup)
    return 0


async def _explain(options: argparse.Namespace) -> int:
    mapping = read_mapping(options)
    samples = (
        list(read_samples(Path(options.explain)))
        if options.explain
        else await _sample(options, _EXPLAINED)
    )
    now = datetime.now(UTC)
    for number, taken in enumerate(samples):
        if number:
            write_line("")
        for line in explain_message(taken, mapping, now=now):
            write_line(line)
    if not samples:
        write_line("there is no message to explain")
    return 0


async def _dry_run(options: argparse.Namespace) -> int:
    mapping = read_mapping(options)
    source = await answering_source(options)
    await source.open()
    try:
        waiting = await source.waiting()
        unacknowledged = await source.unacknowledged(options.sample)
    finally:
        await source.close()
    messages, now = await _sample(options, options.sample), datetime.now(UTC)
    with_workers = () if unacknowledged is None else unacknowledged.messages
    counted = classify(messages, mapping, now=now) + classify(
        with_workers, mapping, now=now, at="worker"
    )
    classified = len(messages) + len(with_workers)
    if options.json:
        classes = [{**kind._asdict(), "messages": count} for kind, count in counted.most_common()]
        total = None if unacknowledged is None else unacknowledged.total
        write_json(
            {
                "waiting": waiting,
                "unacknowledged": total,
                "classified": classified,
                "classes": classes,
            }
        )
        return 0
    write_line(
        f"{waiting:,} messages wait, {_unacknowledged_words(unacknowledged)}; {classified:,} of them were classified, nothing was taken"
    )
    if counted:
        write_table(
            ("QUEUE", "AT", "TASK", "BECOMES", "DUE", "MESSAGES"),
            [(*kind, f"{count:,}") for kind, count in counted.most_common()],
        )
    return 0


def _unacknowledged_words(unacknowledged: Unacknowledged | None) -> str:
    if unacknowledged is None:
        return "and what workers hold the broker does not say (rabbitmqctl list_queues name messages_unacknowledged)"
    return f"{unacknowledged.total:,} more are with workers, unacknowledged"


async def _take(options: argparse.Namespace) -> int:
    """Take in this process alone."""
    source = await checked_source(options)
    stop = stop_event()
    meter = _Meter()
    if sys.stderr.isatty():
        meter.watch(await checked_source(options))
    try:
        totals = await _transfer(options, source, stop=stop, report=meter.show, notice=_say)
    finally:
        await meter.end()
    _write(totals, as_json=options.json)
    return 0


async def _take_as_child(options: argparse.Namespace) -> int:
    """Take as one of several processes: report to the one that started this, and end with it."""
    stop = stop_event()
    ending = asyncio.create_task(end_with_input(stop), name="shovel-input")
    written = 0.0

    def report(totals: TransferTotals) -> None:
        nonlocal written
        if (now := time.monotonic()) - written > _REPORT_SECONDS:
            written = now
            write_json_line(totals_line(totals))

    try:
        totals = await _transfer(
            options,
            source_of(options),
            stop=stop,
            report=report,
            notice=lambda text: write_json_line({NOTICE: text}),
        )
        write_json_line(totals_line(totals))
    except ShovelError as error:
        write_json_line({REFUSED: str(error)})
        return 1
    finally:
        ending.cancel()
    return 0


async def _take_with_processes(options: argparse.Namespace) -> int:
    source = await checked_source(options)
    stop = stop_event()
    meter = _Meter()
    commands = [child_command(options, number) for number in range(options.processes)]
    fleet = Fleet(commands, stopping=stop, report=meter.show, notice=_say)
    if sys.stderr.isatty():
        meter.watch(await checked_source(options))
    try:
        while True:
            await fleet.run()
            if stop.is_set() or not goes_on(options) or not await _left(source, stop):
                break
    finally:
        await meter.end()
    _write(fleet.totals, as_json=options.json)
    return 0


async def _left(source: Source, stop: asyncio.Event) -> int:
    """Return what waits once all processes have ended: one that was killed left its messages to the broker."""
    while not stop.is_set():
        try:
            return await count_waiting(source)
        except SourceLostError:
            await asyncio.sleep(_WAITING_SECONDS)
    return 0


async def _transfer(
    options: argparse.Namespace,
    source: Source,
    *,
    stop: asyncio.Event,
    report: Callable[[TransferTotals], None],
    notice: Callable[[str], None],
) -> TransferTotals:
    async with database(load_settings()) as (pool, keyring):
        return await transfer(
            TransferTask(
                source=source,
                mapping=read_mapping(options),
                pool=pool,
                keyring=keyring,
                backup=None if options.restore else BackupWriter(options.backup),
                backup_folder=options.backup,
                actor=actor(),
                batch_max=options.batch,
                until_empty=options.until_empty or not goes_on(options),
                pace=Pace(options.rate),
                stopping=stop.is_set,
                report=report,
                notice=notice,
            )
        )


async def _sample(options: argparse.Namespace, limit: int) -> Sequence[Taken]:
    source = await answering_source(options)
    await source.open()
    try:
        return await source.sample(limit)
    finally:
        await source.close()


class _Meter:
    """The bar on standard error, where that is a terminal."""

    def __init__(self) -> None:
        self._progress = TransferProgress()
        self._watching: asyncio.Task[None] | None = None

    def watch(self, source: Source) -> None:
        """Ask the source now and then how much is left."""
        self._watching = asyncio.create_task(self._watch(source), name="shovel-meter")

    def show(self, totals: TransferTotals) -> None:
        progress = self._progress
        progress.update(totals.taken, now=time.monotonic())
        show_progress(
            progress.done, progress.done + (progress.remaining or 0), progress.words(), goes_on=True
        )

    async def end(self) -> None:
        """Leave the last state on its line."""
        watching, self._watching = self._watching, None
        if watching is not None:
            watching.cancel()
            await asyncio.wait([watching])
        if self._progress.done:
            end_progress()

    async def _watch(self, source: Source) -> None:
        while True:
            try:
                self._progress.remaining = await count_waiting(source)
            except SourceLostError:
                self._progress.remaining = None
            await asyncio.sleep(_WAITING_SECONDS)


def _say(text: str) -> None:
    sys.stderr.write(f"statesvc: {text}\n")


def _write(totals: TransferTotals, *, as_json: bool) -> None:
    if as_json:
        write_json(asdict(totals))
        return
    write_line(
        f"{totals.taken:,} taken: {totals.moved:,} into the inbox, {totals.dead_letters:,} to the dead letters, "
        f"{totals.known:,} were there already"
    )
    if totals.reused_ids:
        write_line(
            f"{totals.reused_ids:,} of the dead letters have the id of another message and other content: "
            f"statesvc dead-letters list --cause {Cause.REUSED_TASK_ID.value}"
        )
