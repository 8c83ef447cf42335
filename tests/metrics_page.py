"""Writes docs/metrics.md from the table of metrics: `python -m tests.metrics_page`.

A test compares the two.
"""

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

Which metrics exist, and how do you aggregate them? Every role serves `/metrics` in the Prometheus text format at `STATESVC_METRICS_HOST`
and `STATESVC_METRICS_PORT`; `statesvc up` serves all its roles at a single address. The label `role` names the role, `up` the supervisor.

- **Gauges of the database** (queues, dead letters, promises, ...): every `api` process reports the same, read at most every ten seconds. Use `max`.
- **Counters and histograms**: per process. Use `sum`. Counters without labels start at 0; a carrier's problem counters (rescued, retried,
  postponed, second attempts, unmapped, contradicted) start at 0 with its first message; other counters appear with their first count.
- **OTLP**: `pip install 'statesvc[otlp]'` and `OTEL_METRICS_EXPORTER=otlp` or `OTEL_EXPORTER_OTLP_ENDPOINT`; metrics keep their dotted names.
- **Traces** follow `OTEL_TRACES_EXPORTER`. By default 1 % of webhooks are traced up to their subscribers; `OTEL_TRACES_SAMPLER` changes that.

| metric | kind | labels | meaning |
|---|---|---|---|
"""


def prometheus_name(metric: Metric) -> str:
    """Return the name that Prometheus shows (of a histogram: without `_bucket`, `_sum`,
    `_count`).
    """
    unit = "" if metric.unit.startswith("{") else _UNITS[metric.unit]
    total = (
        "_total" if metric.instrument in {Instrument.COUNTER, Instrument.OBSERVED_COUNTER} else ""
    )
    return metric.name.replace(".", "_") + unit + total


def page() -> str:
    rows = [
        f"| `{prometheus_name(metric)}` | {_KINDS[metric.instrument]} |"
        f" {', '.join(metric.attributes)} | {metric.description} |"
        for metric in sorted(names.METRICS, key=lambda metric: metric.name)
    ]
    return _HEAD + "\n".join(rows) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
