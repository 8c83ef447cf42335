"""Names of metrics in rules and dashboards."""

import re

from statesvc.telemetry import names
from tests.metrics_page import prometheus_name


def unknown_metrics(text: str) -> set[str]:
    """Return the names that no metric of the service has."""
    known = {prometheus_name(metric) for metric in names.METRICS}
    named = set(re.findall(r"""\bstatesvc_\w+(?=[{\[) "])""", text))
    return {name for name in named if re.sub(r"_(bucket|count|sum)$", "", name) not in known}
