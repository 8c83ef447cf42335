"""The supervisor of the roles, and the watchdog of each."""

import asyncio
import socket
import sys
from pathlib import Path

import pytest

from statesvc.background.deaths import read_deaths
from statesvc.cli import explained
from statesvc.roles.supervisor import supervise
from statesvc.roles.supervisor.child_plan import (
    PortTakenError,
    ServicePlan,
    any_free,
    choose_ports,
    environment_of,
    is_free,
)
from statesvc.roles.supervisor.child_process import (
    LONGEST_PAUSE_SECONDS,
    ChildProcess,
    ChildProgram,
    pause_after,
)
from statesvc.roles.supervisor.start_child import spawn
from statesvc.roles.supervisor.supervise import banner
from statesvc.roles.watchdog import watchdog
from statesvc.settings.service_settings import load_settings
from tests.world.waiting import until

LOOPBACK = "127.0.0.1"


def plan(host: str = LOOPBACK, demo_rate: float | None = None) -> ServicePlan:
    ports = {"ingress": 8080, "api": 8081, "worker": 8082, "notifier": 8083, "sealer": 8084}
    socket = Path("/run/statesvc/api")
    return ServicePlan(
        host=host,
        ports=ports,
        socket=socket,
        settings=load_settings(),
        explained=explained,
        demo_rate=demo_rate,
    )


def read_lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def test_a_taken_port_is_refused_for_the_api_and_passed_over_for_the_others() -> None:
    port = next(
        port for port in iter(lambda: any_free(LOOPBACK), None) if is_free(LOOPBACK, port - 1)
    )
    with socket.socket() as taken:
        taken.bind((LOOPBACK, port))
        taken.listen()
        with pytest.raises(PortTakenError, match=str(port)):
            choose_ports(LOOPBACK, port, ["api", "worker"])
        ports = choose_ports(LOOPBACK, port - 1, ["api", "worker"])
        assert ports["api"] == port - 1
        assert ports["worker"] not in {port, port - 1}


def test_no_role_gets_a_port_that_a_setting_fixes() -> None:
    port = any_free(LOOPBACK)
    ports = choose_ports(LOOPBACK, port, ["ingress", "api", "worker"], reserved={port + 1})
    assert ports["ingress"] == port
    assert port + 1 not in ports.values()


def test_pauses_grow_and_are_bounded() -> None:
    pauses = [pause_after(deaths) for deaths in range(1, 40)]
    assert pauses == sorted(pauses)
    assert (pauses[0], pauses[-1]) == (0.5, LONGEST_PAUSE_SECONDS)


def test_the_demo_lets_unsigned_webhooks_in_on_the_loopback_only() -> None:
    opened = environment_of(plan(demo_rate=20), {})
    assert opened["STATESVC_ALLOW_UNSIGNED_WEBHOOKS"] == "1"
    assert "127.0.0.0/8" in opened["STATESVC_SUBSCRIBER_ALLOW"]
    public = environment_of(plan("0.0.0.0", demo_rate=20), {})  # noqa: S104 - the case under test
    assert "STATESVC_ALLOW_UNSIGNED_WEBHOOKS" not in public
    assert "STATESVC_SUBSCRIBER_ALLOW" not in public
    assert set(environment_of(plan(), {})) == {"STATESVC_DATA_DIR"}


def test_the_demo_leaves_settings_that_are_set_alone() -> None:
    given = {
        "STATESVC_ALLOW_UNSIGNED_WEBHOOKS": "ups",
        "STATESVC_BOOTSTRAP_KEY": "mine-and-long-enough-for-a-key",
    }
    environment = environment_of(plan(demo_rate=20), given)
    assert given.items() <= environment.items()


@pytest.mark.parametrize(
    "dsn",
    [
        "postgresql://someone:hush@db:5432/statesvc",
        "host=db user=someone password=hush dbname=statesvc",
    ],
)
def test_the_banner_shows_no_password(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", dsn)
    text = banner(plan(), environment={"STATESVC_BOOTSTRAP_KEY": "hush"}, new_key_file=None)
    assert "hush" not in text
    assert "db:5432/statesvc" in text


def test_the_banner_names_no_console_that_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "/console" in banner(plan(), environment={}, new_key_file=None)
    monkeypatch.setattr(supervise, "is_on", lambda addon: addon != "console")
    assert "/console" not in banner(plan(), environment={}, new_key_file=None)


@pytest.mark.usefixtures("own_processes")
async def test_a_child_that_dies_is_started_again_until_it_is_stopped(tmp_path: Path) -> None:
    report = tmp_path / "report"
    code = (
        "import os\n"
        f"open({str(report)!r}, 'a').write(f'{{os.getpid()}}\\n')\n"
        f"os.kill(os.getpid(), 9) if len(open({str(report)!r}).readlines()) < 2 else input()"
    )
    deaths = tmp_path / "deaths"
    start = spawn([sys.executable, "-c", code], {})
    child = ChildProcess(ChildProgram(name="notifier+sealer", start=start, deaths=deaths))
    running = asyncio.create_task(child.run())
    await until(lambda: len(read_lines(report)) >= 2)
    pids = read_lines(report)
    ((death,), _) = read_deaths(deaths, 0)
    assert (death.roles, death.pid, death.exit_code) == (["notifier", "sealer"], int(pids[0]), -9)
    assert len(set(pids)) == 2
    # the child may speak before its supervisor has gone on
    await until(lambda: child.pid is not None)
    assert child.pid == int(pids[1])
    child.stop()
    await asyncio.wait_for(running, 5)
    assert child.pid is None


async def test_systemd_gets_a_ping_twice_in_each_interval(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        systemd.setblocking(False)
        pings = watchdog(
            {
                "NOTIFY_SOCKET": str(tmp_path / "notify"),
                "WATCHDOG_USEC": "200000",
                "WATCHDOG_PID": "7",
            },
            pid=7,
        )
        assert pings is not None
        pings.start()
        async with asyncio.timeout(10):
            for _ in range(3):
                assert await asyncio.get_running_loop().sock_recv(systemd, 100) == b"WATCHDOG=1"
        await pings.close()


def test_a_child_of_who_was_asked_is_silent() -> None:
    asked = {"NOTIFY_SOCKET": "/run/notify", "WATCHDOG_USEC": "1000000", "WATCHDOG_PID": "7"}
    assert watchdog(asked, pid=8) is None
    assert watchdog({}, pid=7) is None
    assert watchdog({"NOTIFY_SOCKET": "/run/notify"}, pid=7) is None
