"""`statesvc up`: the database, the schema, the roles in child processes, and their orderly end.

Children stop in the order of the flow: the demo, then ingress, which serves on until load balancers
have noticed, then the roles behind it, all finishing their work; the embedded server last. A second
signal is passed on, and a remaining child is killed soon after.
"""

import asyncio
import json
import os
import shlex
import sys
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from socket import socket
from typing import Final

import structlog

from statesvc.database.dsns import Dsns, database_name
from statesvc.database.embedded import EmbeddedServer, attach
from statesvc.database.postgres_programs import EmbeddedServerError
from statesvc.roles.carrier_names import note_accepted_carriers, require_known_carriers
from statesvc.roles.master_key import ensure_master_key, key_sources
from statesvc.roles.metrics_address import METRICS, metrics_listener
from statesvc.roles.shutdown import StopSignals
from statesvc.roles.supervisor.child_plan import (
    DEMO,
    INGRESS,
    ServicePlan,
    is_loopback,
    preparation,
    programs,
)
from statesvc.roles.supervisor.child_process import ChildProcess
from statesvc.roles.supervisor.child_watch import ask
from statesvc.roles.supervisor.start_child import Forks
from statesvc.roles.watchdog import watchdog_pings
from statesvc.seams import is_on
from statesvc.settings.http_settings import in_url
from statesvc.telemetry import gauges
from statesvc.telemetry.metrics import Telemetry
from statesvc.telemetry.metrics_server import Exposition, MetricsServer, merged

PROBE_SECONDS: Final = 2.0
NOT_READY_SECONDS: Final = 15.0
DEMO_STOP_SECONDS: Final = 5.0
# Time that a child gets beyond its own grace before it is killed.
OVERTIME_SECONDS: Final = 5.0
# Time for a child to give back its leases after a second signal.
ABORT_SECONDS: Final = 8.0

Running = Mapping[asyncio.Task[None], ChildProcess]

log = structlog.get_logger()


async def up(plan: ServicePlan) -> int:
    """Run until it is asked to stop; return 0 when all ended in order, 1 when a
    second signal cut it short.
    """
    signals = StopSignals()
    signals.listen()
    settings = plan.settings
    require_known_carriers(settings)
    async with watchdog_pings():
        return await _up(plan, Forks(), signals)


async def _up(plan: ServicePlan, forks: Forks, signals: StopSignals) -> int:
    settings = plan.settings
    if Dsns.from_settings(settings.database) is not None:
        key_sources(settings)
        if exit_code := await _prepare(plan, forks):
            return exit_code
        return await _supervise(plan, forks, signals, new_key_file=None)
    server = EmbeddedServer.from_settings(settings.database)
    try:
        await _in_thread(server.start)
        new_key_file = ensure_master_key(settings)
        key_sources(settings)
        note_accepted_carriers(settings)
        if exit_code := await _prepare(plan, forks):
            return exit_code
        if signals.stopping.is_set():
            return 0
        watch = asyncio.create_task(
            _keep_running(server, settings.database.data_dir), name="database-watch"
        )
        try:
            return await _supervise(plan, forks, signals, new_key_file=new_key_file)
        finally:
            watch.cancel()
            await asyncio.wait([watch])
    finally:
        await _in_thread(server.stop)


async def _prepare(plan: ServicePlan, forks: Forks) -> int:
    """Prepare the database in a short-lived process, for its memory.

    Exit code other than 0: it failed.
    """
    child = await forks.fork(preparation(plan))
    return await child.wait()


async def _in_thread(work: Callable[[], object]) -> None:
    """Do it in a thread that ends with it: there must be none when a role is forked.

    A lock that a thread holds at that moment is never released in the role.
    """
    with ThreadPoolExecutor(1) as executor:
        await asyncio.get_running_loop().run_in_executor(executor, work)


async def _supervise(
    plan: ServicePlan, forks: Forks, signals: StopSignals, *, new_key_file: Path | None
) -> int:
    metrics = metrics_listener(plan.settings.http, port=plan.ports[INGRESS])
    plan = replace(plan, metrics_port=metrics.getsockname()[1])
    environment = dict(os.environ)
    children = [ChildProcess(program) for program in programs(plan, forks, environment)]
    async with serving_merged_metrics(metrics, children):
        running = {
            asyncio.create_task(child.run(), name=f"child-{child.program.name}"): child
            for child in children
        }
        announcement = asyncio.create_task(
            _announce(plan, banner(plan, environment=environment, new_key_file=new_key_file)),
            name="announce",
        )
        stopping = asyncio.create_task(signals.stopping.wait(), name="stop-signal")
        vital = {task for task, child in running.items() if child.program.restart}
        done, _ = await asyncio.wait({stopping, *vital}, return_when=asyncio.FIRST_COMPLETED)
        for task in done - {stopping}:
            log.error("task_died", task=task.get_name(), exc_info=task.exception())
        stopping.cancel()
        announcement.cancel()
        http = plan.settings.http
        aborted = await _stop(
            running, signals, drain_seconds=http.drain_seconds, grace_seconds=http.grace_seconds
        )
        return 1 if aborted or done - {stopping} else 0


async def _stop(
    running: Running, signals: StopSignals, *, drain_seconds: float, grace_seconds: float
) -> bool:
    """Stop the children; return True if it was cut short, or a child had to be killed."""
    aborting = signals.aborting
    _stop_children(running, {DEMO})
    await _ended(running, {DEMO}, DEMO_STOP_SECONDS, unless=aborting)
    _stop_children(running, {INGRESS})
    await _ended(running, {INGRESS}, drain_seconds, unless=aborting)
    names = {child.program.name for child in running.values()} - {DEMO}
    _stop_children(running, names - {INGRESS})
    await _ended(running, names, grace_seconds + OVERTIME_SECONDS, unless=aborting)
    if aborting.is_set():
        _stop_children(running, names)
        await _ended(running, names, ABORT_SECONDS, unless=asyncio.Event())
    late = {task: child for task, child in running.items() if not task.done()}
    for child in late.values():
        log.error("child_killed", role=child.program.name, pid=child.pid)
        child.kill()
    if late:
        await asyncio.wait(late, timeout=OVERTIME_SECONDS)
    return aborting.is_set() or bool(late)


def _stop_children(running: Running, names: Collection[str]) -> None:
    for child in running.values():
        if child.program.name in names:
            child.stop()


async def _ended(
    running: Running, names: Collection[str], seconds: float, *, unless: asyncio.Event
) -> None:
    """Wait until the children of these names have ended, for so long, or until `unless` is set."""
    cut_short = asyncio.create_task(unless.wait(), name="cut-short")
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while not cut_short.done() and loop.time() < deadline:
        left = {
            task
            for task, child in running.items()
            if child.program.name in names and not task.done()
        }
        if not left:
            break
        await asyncio.wait(
            {*left, cut_short}, timeout=deadline - loop.time(), return_when=asyncio.FIRST_COMPLETED
        )
    cut_short.cancel()


async def _announce(plan: ServicePlan, text: str) -> None:
    """Print the banner once the port is ready, the API included; log at times that it is not."""
    loop = asyncio.get_running_loop()
    warn_at = loop.time() + NOT_READY_SECONDS
    while (why := await _not_ready(plan)) is not None:
        if loop.time() >= warn_at:
            log.warning(
                "service_not_ready",
                host=plan.host,
                port=plan.ports[INGRESS],
                seconds=NOT_READY_SECONDS,
                why=why,
            )
            warn_at += NOT_READY_SECONDS
        await asyncio.sleep(0.1)
    _print(text)


async def _not_ready(plan: ServicePlan) -> str | None:
    """Return why it is not ready, None if it is; without an HTTP client, to save its memory."""
    with suppress(OSError):
        async with asyncio.timeout(PROBE_SECONDS):
            reader, writer = await asyncio.open_connection(plan.reached_at, plan.ports[INGRESS])
            writer.write(b"GET /readyz HTTP/1.1\r\nHost: statesvc\r\nConnection: close\r\n\r\n")
            head, _, body = (await reader.read()).partition(b"\r\n\r\n")
            writer.close()
            if head.split()[1:2] == [b"200"]:
                return None
            with suppress(ValueError, KeyError):
                return str(json.loads(body)["detail"])
    return "its port does not answer"


def _print(text: str) -> None:
    """Print, unless the terminal is gone: text left in the buffer would end Python with 120."""
    try:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


async def _keep_running(server: EmbeddedServer, data_dir: Path) -> None:
    """Start the embedded server again when two probes in a row find it gone."""
    missed = 0
    while True:
        await asyncio.sleep(PROBE_SECONDS)
        missed = 0 if attach(data_dir) is not None else missed + 1
        if missed < 2:
            continue
        log.error("database_died", attempt=missed - 1)
        try:
            await _in_thread(server.start)
        except EmbeddedServerError:
            log.exception("database_restart_failed")


def banner(plan: ServicePlan, *, environment: Mapping[str, str], new_key_file: Path | None) -> str:
    """Return the text to print when everything is ready.

    A demo on the loopback shows its key, for the printed calls; no other secret is shown.
    """
    others = ", ".join(f"{role} on {port}" for role, port in plan.ports.items() if role != INGRESS)
    rows = [
        ("API", f"{plan.url}   calls: {plan.url}/docs   ({others})"),
        *([("console", f"{plan.url}/console")] if is_on("console") else []),
        (
            "metrics",
            f"http://{in_url(plan.settings.http.metrics_host)}:{plan.metrics_port}/metrics",
        ),
        ("key", f"{_command(environment)} keys create --name me --scopes read,audit,ops"),
    ]
    if plan.settings.database.database_url is None:
        rows.append(("data", str(plan.settings.database.data_dir.absolute())))
    else:
        rows.append(("database", database_name(plan.settings.database)))
    rows.append(("psql", f"{_command(environment)} psql"))
    if new_key_file is not None:
        rows.append(
            ("new", f"{new_key_file} opens all sealed data: keep a copy of it in a safe place")
        )
    if plan.demo_rate is not None and is_loopback(plan.host):
        rows.append(
            (
                "try",
                (
                    f'curl -H "Authorization: Bearer {environment["STATESVC_BOOTSTRAP_KEY"]}"'
                    f" {plan.url}/v1/shipments"
                ),
            )
        )
    rows.append(("stop", "Ctrl-C"))
    return "\n".join(
        ["", "statesvc is running", *(f"  {name:<9} {value}" for name, value in rows), ""]
    )


def _command(environment: Mapping[str, str]) -> str:
    program = Path(sys.executable).with_name("statesvc")
    if not program.exists():
        words = [sys.executable, "-m", "statesvc"]
    else:
        words = [os.path.relpath(program) if program.is_relative_to(Path.cwd()) else str(program)]
    called = shlex.join(words)
    folder = environment.get("STATESVC_DATA_DIR")
    moved = (
        folder is not None
        and "DATABASE_URL" not in environment
        and Path(folder) != Path.cwd() / ".statesvc"
    )
    return (
        f"STATESVC_DATA_DIR={shlex.quote(folder)} {called}"
        if moved and folder is not None
        else called
    )


# For a child's own text, of which its sample of the database may take half.
CHILD_SECONDS: Final = 4.0
SUPERVISOR: Final = "up"


@asynccontextmanager
async def serving_merged_metrics(
    listener: socket, children: Sequence[ChildProcess]
) -> AsyncIterator[None]:
    watched = {
        child.program.name: child.program.watch
        for child in children
        if child.program.watch is not None
    }
    telemetry = Telemetry()
    telemetry.observe(
        gauges.ROLE_ANSWERS,
        lambda: [(float(watch.answers), {"type": role}) for role, watch in watched.items()],
    )

    async def make() -> bytes:
        controls = {role: watch.control for role, watch in watched.items() if watch.answers}
        texts = await asyncio.gather(*map(_text, controls.values()))
        return merged(
            {SUPERVISOR: telemetry.exposition(), **dict(zip(controls, texts, strict=True))}
        )

    server = MetricsServer(listener, {METRICS: Exposition(make).text})
    server.start()
    try:
        yield
    finally:
        await server.close()
        telemetry.close()


async def _text(control: Path) -> bytes:
    """Return the text of a child; empty if it does not answer in time."""
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(CHILD_SECONDS):
            return await ask(control, METRICS)
    return b""
