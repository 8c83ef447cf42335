import asyncio
import socket
from pathlib import Path

from statesvc.roles.watchdog import watchdog


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
