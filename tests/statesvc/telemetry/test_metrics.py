import asyncio
import re

import pytest

from statesvc.telemetry import gauges, names
from statesvc.telemetry.metric import Attribute, Instrument
from statesvc.telemetry.metrics import Telemetry
from statesvc.telemetry.stages import Stage


class FixedPool:
    def get_stats(self) -> dict[str, int]:
        return {
            "pool_max": 8,
            "pool_size": 5,
            "pool_available": 3,
            "requests_waiting": 2,
            "requests_errors": 1,
            "connections_lost": 4,
        }


def test_the_objectives_of_the_ack_are_exact_buckets() -> None:
    telemetry = Telemetry()
    telemetry.ingest_ack_duration.record(0.1, {"carrier": "ups", "outcome": "accepted"})
    telemetry.ingest_ack_duration.record(0.1001, {"carrier": "ups", "outcome": "accepted"})
    text = telemetry.exposition().decode()
    assert (
        'statesvc_ingest_ack_duration_seconds_bucket{carrier="ups",le="0.02",outcome="accepted"}'
        " 0.0" in text
    )
    assert (
        'statesvc_ingest_ack_duration_seconds_bucket{carrier="ups",le="0.1",outcome="accepted"} 1.0'
        in text
    )
    assert (
        'statesvc_ingest_ack_duration_seconds_count{carrier="ups",outcome="accepted"} 2.0' in text
    )


def test_two_processes_in_one_interpreter_share_no_number() -> None:
    one, other = Telemetry(), Telemetry()
    one.events.add(3, {"carrier": "ups", "verdict": "appended"})
    assert (
        'statesvc_events_total{carrier="ups",verdict="appended"} 3.0' in one.exposition().decode()
    )
    assert "statesvc_events_total{" not in other.exposition().decode()


def test_what_counts_trouble_begins_at_zero_and_is_not_set_back() -> None:
    telemetry = Telemetry()
    telemetry.begin_carrier("ups")
    telemetry.messages_retried.add(2, {"carrier": "ups"})
    telemetry.begin_carrier("ups")
    text = telemetry.exposition().decode()
    assert "statesvc_notifications_coalesced_total 0.0" in text
    assert 'statesvc_messages_rescued_total{carrier="ups"} 0.0' in text
    assert 'statesvc_messages_retried_total{carrier="ups"} 2.0' in text
    assert 'statesvc_moves_contradicted_total{carrier="ups",flag="contradicted"} 0.0' in text


def test_pools_and_listeners_are_read_when_somebody_scrapes() -> None:
    telemetry = Telemetry()
    up = [1.0]
    telemetry.observe(gauges.LISTENER_UP, lambda: [(up[0], {})])
    telemetry.observe_pools({"service": FixedPool()})
    assert "statesvc_listener_up 1.0" in telemetry.exposition().decode()
    up[0] = 0.0
    text = telemetry.exposition().decode()
    assert "statesvc_listener_up 0.0" in text
    assert 'statesvc_pool_connections{pool="service",state="used"} 2.0' in text
    assert 'statesvc_pool_waiting{pool="service"} 2.0' in text
    assert 'statesvc_pool_errors_total{pool="service",type="connections"} 4.0' in text


def test_a_stage_is_timed_when_it_fails_too() -> None:
    telemetry = Telemetry()
    with pytest.raises(ValueError, match="no"), telemetry.stage(Stage.APPEND, messages=3):
        raise ValueError("no")
    assert (
        'statesvc_batch_stage_duration_seconds_count{stage="append"} 1.0'
        in telemetry.exposition().decode()
    )


def test_names_follow_the_conventions() -> None:
    assert len({metric.name for metric in names.METRICS}) == len(names.METRICS)
    for metric in names.METRICS:
        assert re.fullmatch(r"statesvc(\.[a-z_]+)+", metric.name)
        assert not metric.name.endswith("_total")
        assert bool(metric.buckets) == (metric.instrument is Instrument.HISTOGRAM)
        assert set(metric.attributes) <= set(Attribute)


async def test_recorded_metrics_of_the_table_are_all_on_the_telemetry_object() -> None:
    telemetry = Telemetry()
    await asyncio.sleep(0)
    recorded = {
        metric.name
        for metric in names.METRICS
        if not metric.instrument.value.startswith("observed")
    }
    instruments = {
        getattr(value, "_name", None) or getattr(value, "name", None)
        for value in vars(telemetry).values()
    }
    assert {name.lower() for name in recorded} <= {str(name).lower() for name in instruments}
