import asyncio

from prometheus_client.parser import text_string_to_metric_families

from statesvc.telemetry import gauges
from statesvc.telemetry.exposition import MADE_EVERY_SECONDS, Exposition, merged
from statesvc.telemetry.metrics import Telemetry


class Clock:
    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


async def test_a_text_is_made_once_a_second_however_many_ask() -> None:
    clock, made = Clock(), list[int]()

    async def make() -> bytes:
        made.append(len(made))
        await asyncio.sleep(0)
        return b"%d" % len(made)

    exposition = Exposition(make, now=clock)
    assert set(await asyncio.gather(*(exposition.text() for _ in range(90)))) == {b"1"}
    clock.seconds += MADE_EVERY_SECONDS / 2
    assert await exposition.text() == b"1"
    clock.seconds += MADE_EVERY_SECONDS / 2
    assert set(await asyncio.gather(*(exposition.text() for _ in range(90)))) == {b"2"}


def test_the_metrics_of_several_roles_are_one_text_that_prometheus_reads() -> None:
    ingress, api = Telemetry(), Telemetry()
    ingress.refusals.add(3, {"cause": "storage_low"})
    api.refusals.add(1, {"cause": "rate"})
    api.observe(gauges.LISTENER_UP, lambda: [(1.0, {})])
    text = merged({"ingress": ingress.exposition(), "api": api.exposition(), "worker": b""})
    families = list(text_string_to_metric_families(text.decode()))
    assert len({family.name for family in families}) == len(families), "each metric stands once"
    samples = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in families
        for sample in family.samples
    }
    assert samples["statesvc_refusals_total", ("cause", "storage_low"), ("role", "ingress")] == 3
    assert samples["statesvc_refusals_total", ("cause", "rate"), ("role", "api")] == 1
    assert samples["statesvc_listener_up", ("role", "api")] == 1
    assert all("role" in sample.labels for family in families for sample in family.samples)
