"""One incident: what goes wrong, which alert must call a human, which page must lead out of it."""

import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.soak.incidents.on_call import OnCall
from tests.soak.incidents.scene import Scene, scene
from tests.soak.incidents.shortened import waits
from tests.world.prometheus import Alert, Prometheus

WELL_SECONDS: Final = 20.0
SILENT_SECONDS: Final = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """`strike` breaks it; `repair` reads the page that the alert links, runs its commands, and
    says what else was needed.
    """

    name: str
    what: str
    """Text of the table."""
    alert: str
    strike: Callable[[Scene], Awaitable[None]]
    repair: Callable[[Scene, OnCall], Awaitable[None]]
    outside: str = ""
    """Actions that no command of ours can do: others bring their own system back."""
    factor: float = 20
    """Factor by which the rules' windows and waits are shorter."""
    well_seconds: float = WELL_SECONDS
    """Seconds of ordinary load before it goes wrong."""
    fires_within: float = 300
    data_dir: Callable[[Path], Path] | None = None
    """Makes the place of the embedded server's data, in this folder."""
    has_listen_proxy: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """Course of an incident, in seconds.

    `full_seconds`: until it would have fired with windows and waits as they are committed.
    """

    fired_seconds: float
    full_seconds: float
    repair_seconds: float
    silent_seconds: float
    alert: Alert
    also: tuple[str, ...]
    """Other alerts that fired until it was over."""
    ran: tuple[str, ...]


def play(incident: Incident) -> Course:
    """Play the whole of it, with a service of its own.

    Raises AssertionError where the alert does not come or the page does not help.
    """
    with tempfile.TemporaryDirectory(prefix="statesvc-test-incident-") as name:
        folder = Path(name)
        # the server runs as another user, who must get through
        folder.chmod(0o755)
        data_dir = None if incident.data_dir is None else incident.data_dir(folder)
        try:
            return asyncio.run(_play(incident, folder, data_dir))
        except BaseException:
            for log in folder.glob("up.log"):
                sys.stderr.write(log.read_text(errors="replace")[-6000:])
            raise
        finally:
            if data_dir is not None:
                subprocess.run(["umount", data_dir.parent], check=True)


async def _play(incident: Incident, folder: Path, data_dir: Path | None) -> Course:
    async with scene(
        folder,
        factor=incident.factor,
        data_dir=data_dir,
        has_listen_proxy=incident.has_listen_proxy,
    ) as placed:
        return await _course(incident, *placed)


async def _course(incident: Incident, place: Scene, watcher: Prometheus, on_call: OnCall) -> Course:
    await asyncio.sleep(incident.well_seconds)
    # a machine that has other work to do is slow, which is no part of the incident
    before = await watcher.firing()
    assert incident.alert not in before, (
        f"it fires before anything goes wrong: {await watcher.alerts()}"
    )
    began, struck = time.monotonic(), time.time()
    await incident.strike(place)
    alert = await watcher.until_firing(incident.alert, seconds=incident.fires_within)
    fired = time.monotonic()
    await incident.repair(place, on_call)
    repaired = time.monotonic()
    also = await watcher.firing() - before - {incident.alert}
    await watcher.until_silent(incident.alert, seconds=SILENT_SECONDS)
    waited, looks_back = waits()[incident.alert]
    return Course(
        fired_seconds=fired - began,
        full_seconds=max(0.0, alert.since - struck) * (incident.factor if looks_back else 1)
        + waited,
        repair_seconds=repaired - fired,
        silent_seconds=time.monotonic() - repaired,
        alert=alert,
        also=tuple(sorted(also)),
        ran=tuple(on_call.ran),
    )
