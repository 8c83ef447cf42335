"""Real notifiers against real receivers in trouble: none is pressed, each is soon told
again as fast as before.

The same receivers as in `tests/simulation`, in real time. `STATESVC_SOAK_PLOTS` names a
folder for the curves.
"""

import asyncio
import os
import sys
import time
from pathlib import Path

import pytest

from tests.acceptance.processes import Service
from tests.simulation.figures import Figures, table
from tests.simulation.scenarios import (
    OFFERED_PER_SECOND,
    RECOVERED_SHARE,
    SCENARIOS,
    SECONDS,
    Scenario,
)
from tests.soak.fanout import Receiver, changes, listening
from tests.soak.plot import Curve, write_chart
from tests.soak.server import SoakServer

pytestmark = pytest.mark.soak

PEAK_MAX = 48
"""It begins to refuse beyond 40, where it bears 20; what a busy machine adds to its latency takes
the limit a little past that.
"""
REFUSED_SHARE_MAX = 0.02
REFUSES_BY_ITSELF = ("broken", "flapping", "429-ing")


@pytest.mark.parametrize(
    "scenario",
    SCENARIOS,
    ids=[scenario.name.partition(":")[0].replace(" ", "-") for scenario in SCENARIOS],
)
async def test_a_receiver_in_trouble_is_not_pressed_and_soon_told_again(
    own_server: SoakServer, tmp_path: Path, scenario: Scenario
) -> None:
    receiver = Receiver(scenario.receiver())
    async with (
        listening([receiver]),
        changes(own_server.dsns.service_dsn) as told,
        Service(
            service_dsn=own_server.dsns.service_dsn,
            owner_dsn=own_server.dsns.owner_dsn,
            folder=tmp_path,
            settings={},
        ) as service,
    ):
        await told.subscribe(receiver.url, coalesce=False)
        shipments = await told.make_shipments(round(OFFERED_PER_SECOND * SECONDS))
        await service.start("notifier")
        receiver.began = time.monotonic()
        telling = asyncio.create_task(told.tell_steadily(shipments, per_second=OFFERED_PER_SECOND))
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


def figures(scenario: Scenario, receiver: Receiver) -> Figures:
    """Return the figures.

    Times are from when changes began to be written: the whole includes the first climb,
    which `well` recovers from.
    """
    answers = sum(receiver.statuses.values())
    return Figures(
        receiver=scenario.name,
        peak=receiver.peak,
        in_trouble=receiver.throughput(scenario.begins, scenario.ends) if scenario.begins else None,
        in_all=receiver.throughput(0, SECONDS),
        refused_share=(answers - receiver.statuses[204]) / answers,
        recovers_seconds=seconds_to_recover(scenario, receiver),
    )


def report(scenario: Scenario, receiver: Receiver) -> None:
    told = figures(scenario, receiver)
    sys.stdout.write(f"\n{table([told])}answers {dict(receiver.statuses)}\n")
    folder = os.environ.get("STATESVC_SOAK_PLOTS")
    if folder:
        Path(folder, f"{_file_name(scenario)}.json").write_text(told.to_json(), "utf-8")


def _file_name(scenario: Scenario) -> str:
    return scenario.name.partition(":")[0].replace(" ", "-")


def plot(scenario: Scenario, receiver: Receiver) -> None:
    folder = os.environ.get("STATESVC_SOAK_PLOTS")
    if not folder:
        return
    seconds = range(int(SECONDS))
    peaks = [
        max((start.in_flight for start in receiver.started if at <= start.at < at + 1), default=0)
        for at in seconds
    ]
    rates = [receiver.throughput(at, at + 1) for at in seconds]
    shaded = (scenario.begins, scenario.ends) if scenario.begins else None
    write_chart(
        Path(folder) / f"{_file_name(scenario)}.svg",
        scenario.name,
        Curve("in flight (peak)", peaks),
        Curve("sent/s", rates),
        shaded=shaded,
    )
