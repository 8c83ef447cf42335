"""The page of metrics says what the code has, by the names that a scrape shows."""

import re
from pathlib import Path

from statesvc.telemetry import names
from statesvc.telemetry.metric import Instrument
from statesvc.telemetry.metrics import Telemetry
from tests.metrics_page import PAGE, page, prometheus_name

PRODUCT = Path(__file__).parents[3] / "statesvc"


def test_the_page_is_that_of_the_table() -> None:
    assert PAGE.read_text("utf-8") == page(), "run python -m tests.metrics_page"


def test_a_scrape_shows_the_names_of_the_page() -> None:
    telemetry = Telemetry()
    for metric in names.METRICS:
        if metric.instrument in {Instrument.OBSERVED_GAUGE, Instrument.OBSERVED_COUNTER}:
            telemetry.observe(metric, lambda: [(1.0, {})])
    for name, instrument in vars(telemetry).items():
        record = (
            None
            if name.startswith("_")
            else getattr(instrument, "record", None) or getattr(instrument, "add", None)
        )
        if record is not None:
            record(1)
    shown = set(
        re.findall(
            r"^(statesvc_\w+?)(?:_bucket|_sum|_count)?(?:\{| )",
            telemetry.exposition().decode(),
            re.MULTILINE,
        )
    )
    assert shown == {prometheus_name(metric) for metric in names.METRICS}


def test_every_metric_is_recorded_somewhere() -> None:
    text = "\n".join(
        path.read_text("utf-8")
        for path in PRODUCT.rglob("*.py")
        if path.name not in {"names.py", "metrics.py"}
    )
    attributes = {
        metric.name: name for name, metric in vars(names).items() if metric in names.METRICS
    }
    recorded = (PRODUCT / "telemetry" / "metrics.py").read_text("utf-8")
    unused = []
    for metric, constant in attributes.items():
        found = re.search(rf"self\.(\w+) = self\._\w+\(names\.{constant}\)", recorded)
        if found is None:
            is_used = f"names.{constant}" in text or f"names.{constant}" in recorded
        else:
            is_used = (
                re.search(rf"\.{found[1]}\b", text) is not None or f".{found[1]}.record" in recorded
            )
        unused += [] if is_used else [metric]
    assert unused == []
