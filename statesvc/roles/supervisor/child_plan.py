"""Children of `up`: which programs, on which ports, in which environment."""

import asyncio
import ipaddress
import secrets
import socket
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import structlog
from psycopg import AsyncConnection

from statesvc.database.connection_bound import read_connection_bound
from statesvc.database.copy_faults import require_no_copy_faults
from statesvc.database.dsns import Dsns
from statesvc.database.migrator import migrate
from statesvc.database.open_connection import open_connection
from statesvc.database.partitions import require_partitions
from statesvc.log.log_months import count_archived
from statesvc.roles.connection_limits import plan_for
from statesvc.roles.launch import run_role
from statesvc.roles.pooler_faults import owner_fault, pooler_mode, require_usable_pooler
from statesvc.roles.runtime import DEATHS, Launch, Role, require_database
from statesvc.roles.supervisor.child_process import ChildProgram
from statesvc.roles.supervisor.child_watch import ASK_SECONDS, ChildWatch
from statesvc.roles.supervisor.start_child import ForkedProgram, Forks, spawn
from statesvc.seams import is_on, sentence
from statesvc.settings.carrier_settings import SettingError
from statesvc.settings.http_settings import in_url, listen_hosts, reached_at
from statesvc.settings.service_settings import Settings

INGRESS: Final[Role] = "ingress"
API: Final[Role] = "api"
ROLES: Final[tuple[Role, ...]] = (INGRESS, API, "worker", "notifier", "sealer")
# The roles of each process. A worker is alone, for a message may end it; notifier and sealer wait
# most of the time.
CHILDREN: Final[tuple[tuple[Role, ...], ...]] = (
    (INGRESS,),
    (API,),
    ("worker",),
    ("notifier", "sealer"),
)
NICENESS: Final = MappingProxyType({API: 5})
# An ACK comes first, then an answer: a backlog must not take the processor from ingress.
BUSY_NICENESS: Final = MappingProxyType({"worker": 10, "notifier": 10})
DEMO: Final = "demo"
LOOPBACK_NETWORKS: Final = "127.0.0.0/8,::1/128"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServicePlan:
    """`ports` by role; `socket`: shared by `api` and `ingress`, which has the service's port."""

    host: str
    ports: Mapping[str, int]
    socket: Path
    settings: Settings
    explained: Callable[[Callable[[], int]], int]
    """Runs a function, prints its error in words, and returns the exit code."""
    metrics_port: int = 0
    """Port on which the supervisor serves the metrics of all roles, once that is known."""
    demo_rate: float | None = None
    """Pushes a second of the sample carriers; None: no demo."""
    ask_seconds: float = ASK_SECONDS
    """Seconds between two questions of the supervisor whether a child lives."""

    def control(self, role: str) -> Path:
        """Return the socket at which the supervisor asks a role for its metrics, and whether it
        lives.
        """
        return self.socket.with_name(f"{role}.control")

    @property
    def wakeups(self) -> Path:
        return self.socket.parent

    @property
    def reached_at(self) -> str:
        return reached_at(self.host)

    @property
    def url(self) -> str:
        return f"http://{in_url(self.reached_at)}:{self.ports[INGRESS]}"


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach it."""
    return all(name == "localhost" or _is_loopback_address(name) for name in listen_hosts(host))


def _is_loopback_address(text: str) -> bool:
    try:
        return ipaddress.ip_address(text).is_loopback
    except ValueError:
        return False


def environment_of(plan: ServicePlan, inherited: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of every child.

    The demo lets unsigned webhooks in on the loopback only, and overrides no setting.
    """
    environment = {
        **inherited,
        "STATESVC_DATA_DIR": str(plan.settings.database.data_dir.absolute()),
    }
    if plan.demo_rate is None:
        return environment
    environment.setdefault("STATESVC_BOOTSTRAP_KEY", f"demo-{secrets.token_urlsafe(24)}")
    if is_loopback(plan.host):
        environment.setdefault("STATESVC_ALLOW_UNSIGNED_WEBHOOKS", "1")
        environment.setdefault("STATESVC_SUBSCRIBER_ALLOW", LOOPBACK_NETWORKS)
    return environment


def preparation(plan: ServicePlan) -> ForkedProgram:
    return ForkedProgram(
        run=partial(plan.explained, partial(prepare, plan.settings)), title="statesvc prepare"
    )


def forked_program(plan: ServicePlan, roles: Sequence[Role]) -> ForkedProgram:
    return ForkedProgram(
        run=partial(plan.explained, partial(run_role, _launch(plan, roles))),
        title=" ".join(f"statesvc {role} --port {plan.ports[role]}" for role in roles),
        niceness=NICENESS.get(roles[0], 0),
    )


def _launch(plan: ServicePlan, roles: Sequence[Role]) -> Launch:
    role = roles[0]
    return Launch(
        role=role,
        host=plan.host,
        port=plan.ports[role],
        settings=plan.settings,
        socket=plan.socket if role in {INGRESS, API} else None,
        wakeups=plan.wakeups,
        sealer_port=plan.ports["sealer"] if "sealer" in roles[1:] else None,
        control=plan.control(role),
        busy_niceness=BUSY_NICENESS.get(role, 0),
    )


def programs(plan: ServicePlan, forks: Forks, environment: Mapping[str, str]) -> list[ChildProgram]:
    """Return the children's programs in the order of their start, and the demo."""
    listed = []
    for roles in CHILDREN:
        name = "+".join(roles)
        watch = ChildWatch(name, plan.control(roles[0]), ask_seconds=plan.ask_seconds)
        listed.append(
            ChildProgram(
                name=name,
                start=partial(forks.fork, forked_program(plan, roles)),
                watch=watch,
                deaths=plan.wakeups / DEATHS,
            )
        )
    if plan.demo_rate is not None:
        command = [
            sys.executable,
            "-m",
            "statesvc.addons.demo.run",
            "--url",
            plan.url,
            "--rate",
            str(plan.demo_rate),
        ]
        listed.append(
            ChildProgram(
                name=DEMO, start=spawn(command, demo_environment(environment)), restart=False
            )
        )
    return listed


def demo_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of the demo: the sample subscriber calls the API with the first
    key.
    """
    return {**environment, "STATESVC_DEMO_KEY": environment["STATESVC_BOOTSTRAP_KEY"]}


class PortTakenError(RuntimeError):
    def __init__(self, host: str, port: int) -> None:
        super().__init__(f"port {port} on {host} is in use: choose another one with --port")


def is_free(host: str, port: int) -> bool:
    return all(_is_free(name, port) for name in listen_hosts(host))


def _is_free(name: str, port: int) -> bool:
    with _probe(name) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((name, port))
        except OSError:
            return False
    return True


def _probe(name: str) -> socket.socket:
    family = socket.AF_INET6 if ":" in name else socket.AF_INET
    probe = socket.socket(family, socket.SOCK_STREAM)
    if family == socket.AF_INET6:
        # as servers do: IPv4 has a socket of its own
        probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    return probe


def choose_ports(
    host: str, first: int, names: Iterable[str], *, reserved: Collection[int] = ()
) -> dict[str, int]:
    """Choose ports: the first name gets `first`, each other the next number, or any free port where
    that is taken or `reserved`.
    """
    chosen: dict[str, int] = {}
    for offset, name in enumerate(names):
        wanted = first + offset if first else 0
        if offset == 0 and first:
            if not is_free(host, first):
                raise PortTakenError(host, first)
            chosen[name] = first
        elif 0 < wanted <= 65535 and wanted not in reserved and is_free(host, wanted):
            chosen[name] = wanted
        else:
            chosen[name] = any_free(host, reserved=reserved)
    return chosen


def any_free(host: str, *, reserved: Collection[int] = ()) -> int:
    """Return a port that is free now, and not `reserved`."""
    names = listen_hosts(host)
    while True:
        with _probe(names[0]) as probe:
            probe.bind((names[0], 0))
            port: int = probe.getsockname()[1]
        if port not in reserved and is_free(host, port):
            return port


_log = structlog.get_logger()


def prepare(settings: Settings) -> int:
    """Migrate.

    Raise once the errors that each role would repeat, MissingPartitionError among them.
    """
    asyncio.run(_prepare(settings))
    return 0


async def _prepare(settings: Settings) -> None:
    dsns = require_database(settings.database)
    is_embedded = settings.database.database_url is None
    if not is_embedded:
        await require_usable_pooler(dsns, settings)
        if settings.database.owner_url is not None and (
            fault := owner_fault(await pooler_mode(dsns.owner))
        ):
            _log.warning("owner_behind_pooler", why=fault)
    await _migrate(
        dsns,
        settings.database.auditor_role,
        has_owner=is_embedded or settings.database.owner_url is not None,
    )
    async with await open_connection(dsns.listen, application_name="statesvc up") as connection:
        await require_partitions(connection)
        await require_retention(connection, settings)
        await require_no_copy_faults(connection)
        if not dsns.is_pooled:
            plan_for(settings, await read_connection_bound(connection))


async def _migrate(dsns: Dsns, auditor_role: str, *, has_owner: bool) -> None:
    """Migrate; a role without the tables reads the ledger, which suffices if no file is pending."""
    if not has_owner:
        report = await migrate(dsns.owner, dsns.listen, check_only=True)
        if not report.pending:
            return
    await migrate(dsns.owner, dsns.listen, superuser_dsn=dsns.superuser, auditor_role=auditor_role)


async def require_retention(connection: AsyncConnection[Any], settings: Settings) -> None:
    """Refuse to start without the job that deletes archived bodies, or takes months out of the log,
    when their time has come.
    """
    if is_on("archive"):
        return
    if (archived := await count_archived(connection)).days:
        bound = (
            f"STATESVC_ARCHIVE_KEEP_MONTHS is {settings.archive.keep_months}, and {archived.days}"
            " days of bodies are archived"
        )
    elif settings.archive.log_hot_months is not None:
        bound = f"STATESVC_ARCHIVE_LOG_HOT_MONTHS is {settings.archive.log_hot_months}"
    else:
        return
    raise SettingError(f"{bound}: {sentence('archive', 'to keep that bound')}")
