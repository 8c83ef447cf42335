"""Three machines with etcd, Patroni and PostgreSQL each, as `deploy/patroni/` sets them up, and a
fourth for the service with HAProxy.

A machine is a network namespace with an address of its own: killed, it loses all of its processes
at once; cut off, its wire. The fourth is this one. Needs root, Patroni in `/opt/patroni`, and from
Debian: etcd-server, haproxy, iproute2.
"""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import tempfile
import urllib.request
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

from psycopg.conninfo import make_conninfo

from statesvc.database.migrator import migrate
from statesvc.database.postgres_programs import MAJOR, programs
from statesvc.database.server_user import ServerUser, choose_user
from tests.acceptance.processes import until_false
from tests.world import postgres
from tests.world.programs import required, required_patroni

FILES: Final = Path(__file__).parents[2] / "deploy" / "patroni"
NETWORK: Final = "10.213.77"
START_SECONDS: Final = 240
_BRIDGE: Final = "statesvc-ha"
_PASSWORD: Final = "for-tests-only"
_ROLES: Final = Path(__file__).parents[2] / "statesvc" / "database" / "embedded_roles.sql"


def run(
    *command: str | Path, check: bool = True, environment: Mapping[str, str] | None = None
) -> str:
    """Run a program to its end; return what it printed."""
    ended = subprocess.run(
        list(map(str, command)),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, **(environment or {})},
    )
    if check and ended.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}: {ended.stdout}\n{ended.stderr}")
    return ended.stdout


class Machine:
    """One of three."""

    def __init__(self, number: int, folder: Path, user: ServerUser) -> None:
        self.name = f"node{number}"
        self.address = f"{NETWORK}.{number}"
        self._namespace = f"{_BRIDGE}-{number}"
        self._wire = f"{_BRIDGE}-w{number}"
        self._folder = folder / self.name
        self._user = user
        self._processes: list[subprocess.Popen[bytes]] = []

    def build(self) -> None:
        """Build its network and its folder; nothing runs yet."""
        self.raze()
        run("ip", "netns", "add", self._namespace)
        run(
            "ip",
            "link",
            "add",
            self._wire,
            "type",
            "veth",
            "peer",
            "name",
            "eth0",
            "netns",
            self._namespace,
        )
        run("ip", "link", "set", self._wire, "master", _BRIDGE, "up")
        run("ip", "-n", self._namespace, "addr", "add", f"{self.address}/24", "dev", "eth0")
        run("ip", "-n", self._namespace, "link", "set", "eth0", "up")
        run("ip", "-n", self._namespace, "link", "set", "lo", "up")
        self._folder.mkdir(mode=0o700)
        (self._folder / "patroni.yml").write_text(self._configuration())
        for path in (self._folder, *self._folder.iterdir()):
            self._user.give(path)

    def _configuration(self) -> str:
        """Return the file as it is shipped, but for what machines that share a disk cannot
        share.
        """
        text = (FILES / "patroni.yml").read_text()
        shipped = "/var/run/postgresql"
        assert text.count(shipped) == 1
        return text.replace(shipped, str(self._folder))

    def raze(self) -> None:
        """Remove everything of it."""
        self.kill()
        run("ip", "netns", "del", self._namespace, check=False)
        run("ip", "link", "del", self._wire, check=False)

    def boot(self) -> None:
        """Start all of its services, as after a power cut."""
        self._start("etcd", {**_environment("etcd.env"), **self._etcd()}, "etcd")
        self._start(
            "patroni",
            {**_environment("node.env"), **self._patroni()},
            required_patroni(),
            str(self._folder / "patroni.yml"),
        )

    def kill(self) -> None:
        """Send SIGKILL to everything that runs there, at once."""
        self._signal(signal.SIGKILL)
        for process in self._processes:
            process.wait()
        self._processes.clear()

    def freeze(self) -> None:
        """Send SIGSTOP to all that runs there: its clock stands still for it, and it
        wakes up as what it was.
        """
        self._signal(signal.SIGSTOP)

    def wake(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals, only: str = "") -> None:
        """Signal all processes, or those with these words in their title."""
        for pid in run("ip", "netns", "pids", self._namespace, check=False).split():
            with suppress(ProcessLookupError, FileNotFoundError):
                if only in Path(f"/proc/{pid}/cmdline").read_text(errors="replace"):
                    os.kill(int(pid), number)

    def cut_off(self) -> None:
        """Pull its wire: nobody is heard, nothing is refused."""
        run("ip", "link", "set", self._wire, "down")

    def reconnect(self) -> None:
        run("ip", "link", "set", self._wire, "up")

    def freeze_receiver(self) -> None:
        """Have its server take in nothing, for less than `wal_sender_timeout`: then the
        primary would part with it.
        """
        self._signal(signal.SIGSTOP, only="walreceiver")

    def log(self) -> str:
        """Return the end of what Patroni and PostgreSQL wrote, for a test that fails."""
        return "\n".join(
            path.read_text(errors="replace")[-4000:]
            for path in sorted(self._folder.glob("*.log"))
            if path.stem != "etcd"
        )

    def ask(self, path: str) -> Any:
        """Return Patroni's own answer, past everything; None where there is none."""
        try:
            with urllib.request.urlopen(f"http://{self.address}:8008{path}", timeout=2) as answer:
                return json.load(answer)
        except (OSError, ValueError):
            return None

    def _start(self, name: str, environment: dict[str, str], *command: str) -> None:
        user = (
            []
            if self._user.uid is None
            else [f"--reuid={self._user.uid}", f"--regid={self._user.gid}", "--clear-groups"]
        )
        with (self._folder / f"{name}.log").open("ab") as output:
            process = subprocess.Popen(
                ["ip", "netns", "exec", self._namespace, "setpriv", *user, "--", *command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd="/",
                env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", **environment},
                start_new_session=True,
            )
        self._processes.append(process)

    def _etcd(self) -> dict[str, str]:
        peer, client = f"http://{self.address}:2380", f"http://{self.address}:2379"
        return {
            "ETCD_NAME": self.name,
            "ETCD_DATA_DIR": str(self._folder / "etcd"),
            "ETCD_LISTEN_PEER_URLS": peer,
            "ETCD_LISTEN_CLIENT_URLS": client,
            "ETCD_INITIAL_ADVERTISE_PEER_URLS": peer,
            "ETCD_ADVERTISE_CLIENT_URLS": client,
            "ETCD_INITIAL_CLUSTER": ",".join(
                f"node{number}=http://{NETWORK}.{number}:2380" for number in (1, 2, 3)
            ),
        }

    def _patroni(self) -> dict[str, str]:
        return {
            "PATRONI_NAME": self.name,
            "PATRONI_RESTAPI_CONNECT_ADDRESS": f"{self.address}:8008",
            "PATRONI_POSTGRESQL_CONNECT_ADDRESS": f"{self.address}:5432",
            "PATRONI_ETCD3_HOSTS": ",".join(f"{NETWORK}.{number}:2379" for number in (1, 2, 3)),
            "PATRONI_POSTGRESQL_DATA_DIR": str(self._folder / "data"),
            "PATRONI_POSTGRESQL_BIN_DIR": str(programs(MAJOR)),
            "PATRONI_POSTGRESQL_PGPASS": str(self._folder / "pgpass"),
            "PATRONI_SUPERUSER_PASSWORD": _PASSWORD,
        }


def _environment(name: str) -> dict[str, str]:
    """Read the variables of a file that systemd reads."""
    lines = (FILES / name).read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


class PatroniCluster:
    """`hosts`: the addresses that name all three and lead to the primary; `proxied`:
    those through HAProxy.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._user = choose_user(folder)
        self._user.give(folder)
        self.machines = [Machine(number, folder, self._user) for number in (1, 2, 3)]
        self._proxy: subprocess.Popen[bytes] | None = None
        self.hosts = _dsns(
            ",".join(machine.address for machine in self.machines),
            target_session_attrs="read-write",
        )
        self.proxied = _dsns(f"{NETWORK}.254")

    async def start(self) -> None:
        await asyncio.to_thread(self._build)
        await self.settled()
        primary = _dsns((await self.primary()).address)
        await asyncio.to_thread(
            _make_roles, make_conninfo(primary.superuser_dsn, dbname="postgres")
        )
        await migrate(primary.owner_dsn, primary.service_dsn)

    def _build(self) -> None:
        run("ip", "link", "del", _BRIDGE, check=False)
        run("ip", "link", "add", _BRIDGE, "type", "bridge")
        run("ip", "addr", "add", f"{NETWORK}.254/24", "dev", _BRIDGE)
        run("ip", "link", "set", _BRIDGE, "up")
        for machine in self.machines:
            machine.build()
        for machine in self.machines:
            machine.boot()
        nodes = {
            f"NODE{number}": machine.address
            for number, machine in enumerate(self.machines, start=1)
        }
        with (self._folder / "haproxy.log").open("wb") as output:
            self._proxy = subprocess.Popen(
                [required("haproxy", "haproxy"), "-db", "-f", FILES / "haproxy.cfg"],
                env={**os.environ, **nodes, "BIND": f"{NETWORK}.254"},
                stdout=output,
                stderr=output,
            )

    async def primary(self) -> Machine:
        """Wait for the one that Patroni calls leader, and return it."""
        async with asyncio.timeout(START_SECONDS):
            while True:
                for machine in self.machines:
                    if await asyncio.to_thread(machine.ask, "/primary") is not None:
                        return machine
                await asyncio.sleep(0.1)

    async def settled(self) -> None:
        """Wait until a primary has a synchronous standby, and all three follow the same history."""

        async def unsettled() -> bool:
            members = await self.members()
            leaders = [member for member in members if member["role"] == "leader"]
            return (
                sorted(member["role"] for member in members)
                != ["leader", "replica", "sync_standby"]
                or len({member.get("timeline") for member in members}) > 1
                or any(member["state"] not in {"running", "streaming"} for member in members)
                or leaders[0]["name"] != (await self.primary()).name
            )

        try:
            async with asyncio.timeout(START_SECONDS):
                await until_false(unsettled, pause_seconds=0.25)
        except TimeoutError:
            members = await self.members()
            logs = "\n".join(f"== {machine.name}\n{machine.log()}" for machine in self.machines)
            raise AssertionError(f"the cluster did not settle: {members}\n{logs}") from None

    async def members(self) -> Sequence[dict[str, Any]]:
        """Return all members as any of them lists them; empty where none answers."""
        for machine in self.machines:
            cluster = await asyncio.to_thread(machine.ask, "/cluster")
            if cluster is not None:
                members: list[dict[str, Any]] = cluster["members"]
                return members
        return []

    async def replaced(self, before: Machine) -> Machine:
        """Wait until another one is the primary."""
        async with asyncio.timeout(START_SECONDS):
            while True:
                for machine in self.machines:
                    if (
                        machine is not before
                        and await asyncio.to_thread(machine.ask, "/primary") is not None
                    ):
                        return machine
                await asyncio.sleep(0.05)

    async def switch_over(self) -> None:
        """Ask for a switch-over as an operator does: the synchronous standby takes the primary's
        place.
        """
        primary = await self.primary()
        secret = _environment("node.env")
        command = (
            "curl",
            "-sS",
            "-f",
            "-m",
            "60",
            "-u",
            f"{secret['PATRONI_RESTAPI_USERNAME']}:{secret['PATRONI_RESTAPI_PASSWORD']}",
        )
        wanted = json.dumps({"leader": primary.name})
        await asyncio.to_thread(
            run, *command, "-d", wanted, f"http://{primary.address}:8008/switchover"
        )
        await self.replaced(primary)

    def stop(self) -> None:
        """Remove everything."""
        if self._proxy is not None:
            self._proxy.kill()
            self._proxy.wait()
        for machine in self.machines:
            machine.raze()
        run("ip", "link", "del", _BRIDGE, check=False)
        shutil.rmtree(self._folder, ignore_errors=True)


def _make_roles(superuser_dsn: str) -> None:
    passwords = {f"STATESVC_{role}_PASSWORD": _PASSWORD for role in ("OWNER", "SERVICE", "AUDITOR")}
    run(
        programs(MAJOR) / "psql",
        "-X",
        "-q",
        "-v",
        "ON_ERROR_STOP=1",
        "-d",
        superuser_dsn,
        "-f",
        _ROLES,
        environment=passwords,
    )


def _dsns(hosts: str, **more: str) -> postgres.Server:
    def of(user: str) -> str:
        return make_conninfo(host=hosts, user=user, password=_PASSWORD, dbname="statesvc", **more)

    return postgres.Server(of("postgres"), of("statesvc_owner"), of("statesvc_service"))


@asynccontextmanager
async def patroni_cluster() -> AsyncIterator[PatroniCluster]:
    """Run a cluster, migrated and settled, for the time of the block."""
    cluster = PatroniCluster(Path(tempfile.mkdtemp(prefix="statesvc-ha-")))
    try:
        await cluster.start()
        yield cluster
    finally:
        await asyncio.to_thread(cluster.stop)
