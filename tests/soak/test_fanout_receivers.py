"""Real notifiers against real receivers in trouble: none is pressed, each is soon told again as fast as before.

The same receivers as in `tests/simulation`, in real time. `STATESVC_SOAK_PLOTS` names a folder for the curves.
"""

import asyncio
import os
import sys
import time
from pathlib import Path

import pytest

from tests.acceptance.processes import Service
from tests.simulation.scenarios import BEGINS, OFFERED_PER_SECOND, RECOVERED_SHARE, SCENARIOS, SECONDS, Scenario
from tests.soak.fanout import Receiver, changes, listening
from tests.soak.plot import Curve, write_chart
from tests.soak.server import SoakServer

pytestmark = pytest.mark.soak

PEAK_MAX = 48
"""It begins to refuse beyond 40, where it bears 20; what a busy machine adds to its latency takes the limit a little past that."""
REFUSED_SHARE_MAX = 0.02
REFUSES_BY_ITSELF = ("broken", "flapping", "429-ing")


@pytest.mark.parametrize("scenario", SCENARIOS, ids=[scenario.name.partition(":")[0].replace(" ", "-") for scenario in SCENARIOS])
async def test_a_receiver_in_trouble_is_not_pressed_and_soon_told_again(own_server: SoakServer, tmp_path: Path, scenario: Scenario) -> None:
    receiver = Receiver(scenario.receiver())
    async with (
        listening([receiver]),
        changes(own_server.dsns.service_dsn) as told,
        Service(service_dsn=own_server.dsns.service_dsn, owner_dsn=own_server.dsns.owner_dsn, folder=tmp_path, settings={}) as service,
    ):
        await told.subscribe(receiver.url, coalesce=False)
        await service.start("notifier")
        receiver.began = time.monotonic()
        telling = asyncio.create_task(told.tell_steadily(per_second=OFFERED_PER_SECOND, seconds=SECONDS))
        await asyncio.sleep(SECONDS)
        telling.cancel()
        await asyncio.gather(telling, return_exceptions=True)
    plot(scenario, receiver)
    report(scenario, receiver)
    assert receiver.peak <= (64 if scenario.name.startswith("bursty") else PEAK_MAX)
    assert seconds_to_recover(scenario, receiver) <= 15
    if not scenario.name.startswith(REFUSES_BY_ITSELF):
        assert receiver.statuses[503] <= REFUSED_SHARE_MAX * sum(receiver.statuses.values())


def seconds_to_recover(scenario: Scenario, receiver: Receiver) -> float:
    usual = receiver.throughput(10, scenario.begins or SECONDS)
    at = scenario.ends
    while at < SECONDS - 1 and receiver.throughput(at, at + 1) < RECOVERED_SHARE * usual:
        at += 0.1
    return at - scenario.ends


def report(scenario: Scenario, receiver: Receiver) -> None:
    in_trouble = f"{receiver.throughput(scenario.begins, scenario.ends):.0f}/s in trouble, " if scenario.begins else ""
    sys.stdout.write(
        f"\n{scenario.name}: peak {receiver.peak} in flight, {receiver.throughput(10, BEGINS):.0f}/s told before, {in_trouble}"
        f"{receiver.throughput(scenario.ends or 10, SECONDS):.0f}/s after, recovers in {seconds_to_recover(scenario, receiver):.1f} s,"
        f" answers {dict(receiver.statuses)}\n"
    )


def plot(scenario: Scenario, receiver: Receiver) -> None:
    folder = os.environ.get("STATESVC_SOAK_PLOTS")
    if not folder:
        return
    seconds = range(int(SECONDS))
    peaks = [max((start.in_flight for start in receiver.started if at <= start.at < at + 1), default=0) for at in seconds]
    rates = [receiver.throughput(at, at + 1) for at in seconds]
    name = scenario.name.partition(":")[0].replace(" ", "-")
    shaded = (scenario.begins, scenario.ends) if scenario.begins else None
    write_chart(Path(folder) / f"{name}.svg", scenario.name, Curve("in flight (peak)", peaks), Curve("told/s", rates), shaded=shaded)
