"""Metrics of the spool of an ingress process."""

from statesvc.spool.spool import age_seconds
from statesvc.spool.spooling import Spooling
from statesvc.telemetry import gauges
from statesvc.telemetry.metrics import Telemetry


def observe_spool(telemetry: Telemetry, spooling: Spooling) -> None:
    waiting = spooling.spool.waiting

    def oldest() -> float:
        message_id = waiting().oldest_id
        return 0.0 if message_id is None else age_seconds(message_id)

    telemetry.ingest_spooled.add(0)
    spooling.kept = lambda: telemetry.ingest_spooled.add(1)
    telemetry.observe(gauges.SPOOL_MESSAGES, lambda: [(float(waiting().messages), {})])
    telemetry.observe(gauges.SPOOL_BYTES, lambda: [(float(waiting().bytes), {})])
    telemetry.observe(gauges.SPOOL_OLDEST, lambda: [(oldest(), {})])
