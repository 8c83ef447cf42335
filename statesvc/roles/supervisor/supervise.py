"""`statesvc up`: the database, the schema, one child per role, and their orderly end.

The order of stopping is that of the flow: the demo, then the API, which serves on until load balancers have noticed, then the
roles behind it, all finishing what they have begun; the embedded server last. A second signal is passed on: whoever is not gone
soon after it is killed.
"""

import asyncio
import os
import sys
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import aiohttp
import structlog

from statesvc.database.dsns import Dsns
from statesvc.database.embedded import EmbeddedServer, attach
from statesvc.database.embedded_error import EmbeddedServerError
from statesvc.database.migrator import migrate
from statesvc.roles.master_key import ensure_master_key, key_sources
from statesvc.roles.shutdown import StopSignals
from statesvc.roles.supervisor.banner import banner
from statesvc.roles.supervisor.child_plan import API, DEMO, ROLES, Plan, environment_of, programs
from statesvc.roles.supervisor.child_process import Child

LOOK_SECONDS: Final = 2.0
NOT_READY_SECONDS: Final = 15.0
DEMO_STOP_SECONDS: Final = 5.0
OVERTIME_SECONDS: Final = 5.0
"""What a child gets beyond its own grace before it is killed."""
ABORT_SECONDS: Final = 8.0
"""What a child gets to give back what it holds after a second signal."""

Running = Mapping[asyncio.Task[None], Child]

log = structlog.get_logger()


async def up(plan: Plan) -> int:
    """Runs until told to stop; 0 when all ended in order, 1 when a second signal cut it short."""
    signals = StopSignals()
    signals.listen()
    settings = plan.settings
    given = Dsns.from_settings(settings.database)
    if given is not None:
        key_sources(settings)
        await _migrate(given, settings.database.auditor_role, has_owner=settings.database.owner_url is not None)
        return await _supervise(plan, given, signals, new_key_file=None)
    server = EmbeddedServer(settings.database.data_dir, tcp_port=settings.database.embedded_port)
    try:
        dsns = await asyncio.to_thread(server.start)
        new_key_file = ensure_master_key(settings)
        key_sources(settings)
        await _migrate(dsns, settings.database.auditor_role, has_owner=True)
        if signals.stopping.is_set():
            return 0
        watch = asyncio.create_task(_keep_running(server, settings.database.data_dir), name="database-watch")
        try:
            return await _supervise(plan, dsns, signals, new_key_file=new_key_file)
        finally:
            watch.cancel()
            await asyncio.wait([watch])
    finally:
        await asyncio.to_thread(server.stop)


async def _migrate(dsns: Dsns, auditor_role: str, *, has_owner: bool) -> None:
    """A role that does not own the tables can look, and need do no more when nothing is pending."""
    if not has_owner:
        report = await migrate(dsns.owner, dsns.listen, check_only=True)
        if not report.pending:
            return
    await migrate(dsns.owner, dsns.listen, superuser_dsn=dsns.superuser, auditor_role=auditor_role)


async def _supervise(plan: Plan, dsns: Dsns, signals: StopSignals, *, new_key_file: Path | None) -> int:
    environment = environment_of(plan, os.environ)
    children = [Child(program) for program in programs(plan, environment)]
    running = {asyncio.create_task(child.run(), name=f"child-{child.program.name}"): child for child in children}
    greet = asyncio.create_task(
        _greet(plan, banner(plan, service_dsn=dsns.service, environment=environment, new_key_file=new_key_file)), name="greeting"
    )
    stopping = asyncio.create_task(signals.stopping.wait(), name="stop-signal")
    vital = {task for task, child in running.items() if child.program.restart}
    done, _ = await asyncio.wait({stopping, *vital}, return_when=asyncio.FIRST_COMPLETED)
    for task in done - {stopping}:
        log.error("task_died", task=task.get_name(), exc_info=task.exception())
    stopping.cancel()
    greet.cancel()
    http = plan.settings.http
    aborted = await _stop(running, signals, drain_seconds=http.drain_seconds, grace_seconds=http.grace_seconds)
    return 1 if aborted or done - {stopping} else 0


async def _stop(running: Running, signals: StopSignals, *, drain_seconds: float, grace_seconds: float) -> bool:
    """True if it was cut short, or a child had to be killed."""
    aborting = signals.aborting
    _tell(running, {DEMO})
    await _ended(running, {DEMO}, DEMO_STOP_SECONDS, unless=aborting)
    _tell(running, {API})
    await _ended(running, {API}, drain_seconds, unless=aborting)
    _tell(running, set(ROLES) - {API})
    await _ended(running, ROLES, grace_seconds + OVERTIME_SECONDS, unless=aborting)
    if aborting.is_set():
        _tell(running, ROLES)
        await _ended(running, ROLES, ABORT_SECONDS, unless=asyncio.Event())
    late = {task: child for task, child in running.items() if not task.done()}
    for child in late.values():
        log.error("child_killed", role=child.program.name, pid=child.pid)
        child.kill()
    if late:
        await asyncio.wait(late, timeout=OVERTIME_SECONDS)
    return aborting.is_set() or bool(late)


def _tell(running: Running, names: Collection[str]) -> None:
    for child in running.values():
        if child.program.name in names:
            child.stop()


async def _ended(running: Running, names: Collection[str], seconds: float, *, unless: asyncio.Event) -> None:
    """Returns when the children of these names have ended, after so long, or when `unless` is set."""
    cut_short = asyncio.create_task(unless.wait(), name="cut-short")
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while not cut_short.done() and loop.time() < deadline:
        left = {task for task, child in running.items() if child.program.name in names and not task.done()}
        if not left:
            break
        await asyncio.wait({*left, cut_short}, timeout=deadline - loop.time(), return_when=asyncio.FIRST_COMPLETED)
    cut_short.cancel()


async def _greet(plan: Plan, text: str) -> None:
    """Prints the banner once the API says that it is ready; until then says now and then why not."""
    loop = asyncio.get_running_loop()
    complain_at = loop.time() + NOT_READY_SECONDS
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=LOOK_SECONDS)) as session:
        while True:
            with suppress(aiohttp.ClientError, TimeoutError):
                async with session.get(f"{plan.url}/readyz") as answer:
                    if answer.ok:
                        break
            if loop.time() >= complain_at:
                log.warning("not_ready_yet", role="api", host=plan.host, port=plan.ports["api"], seconds=NOT_READY_SECONDS)
                complain_at += NOT_READY_SECONDS
            await asyncio.sleep(0.1)
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


async def _keep_running(server: EmbeddedServer, data_dir: Path) -> None:
    """Starts the embedded server again when it is gone at two looks in a row."""
    missed = 0
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        missed = 0 if attach(data_dir) is not None else missed + 1
        if missed < 2:
            continue
        log.error("database_died", attempt=missed - 1)
        try:
            await asyncio.to_thread(server.start)
        except EmbeddedServerError:
            log.exception("database_did_not_start")
