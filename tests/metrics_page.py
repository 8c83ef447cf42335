"""Writes docs/metrics.md from the table of metrics: `python -m tests.metrics_page`. A test compares the two."""

from pathlib import Path
from typing import Final

from statesvc.telemetry import names
from statesvc.telemetry.metric import Instrument, Metric

PAGE: Final = Path(__file__).parents[1] / "docs" / "metrics.md"
_UNITS: Final = {"s": "_seconds", "By": "_bytes", "1": ""}
_KINDS: Final = {
    Instrument.COUNTER: "counter",
    Instrument.OBSERVED_COUNTER: "counter",
    Instrument.HISTOGRAM: "histogram",
    Instrument.OBSERVED_GAUGE: "gauge",
}
_HEAD: Final = """# Metrics
<!-- written by python -m tests.metrics_page: change statesvc/telemetry/names.py instead -->

Every role serves `/metrics` in the Prometheus text format at `STATESVC_METRICS_HOST` and `STATESVC_METRICS_PORT`; `statesvc up` serves
those of all its roles at one address. The label `role` of each sample names the role, `up` is the supervisor itself. The gauges that speak
of the database (queues, dead letters, promises, ...) are read by `api`, at most every ten seconds; several of them report the same, so take
`max` over processes. Counters and histograms belong to the process that counts: take `sum`. A counter without labels begins at 0, and so
does, with a carrier's first message, what counts trouble with its messages (rescued, retried, postponed, second attempts, unmapped,
contradicted); others appear when they first count.
With `OTEL_METRICS_EXPORTER=otlp` or `OTEL_EXPORTER_OTLP_ENDPOINT` the same metrics go out by OTLP under their dotted names, with
`pip install 'statesvc[otlp]'`; traces follow `OTEL_TRACES_EXPORTER`, and one webhook in a hundred is traced, up to its subscribers, unless
`OTEL_TRACES_SAMPLER` says otherwise.

| metric | kind | labels | what it says |
|---|---|---|---|
"""


def prometheus_name(metric: Metric) -> str:
    """Return the name that Prometheus shows (of a histogram: without `_bucket`, `_sum`, `_count`)."""
    unit = "" if metric.unit.startswith("{") else _UNITS[metric.unit]
    total = (
        "_total" if metric.instrument in {Instrument.COUNTER, Instrument.OBSERVED_COUNTER} else ""
    )
    return metric.name.replace(".", "_") + unit + total


def page() -> str:
    rows = [
        f"| `{prometheus_name(metric)}` | {_KINDS[metric.instrument]} | {', '.join(metric.attributes)} | {metric.description} |"
        for metric in sorted(names.METRICS, key=lambda metric: metric.name)
    ]
    return _HEAD + "\n".join(rows) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
