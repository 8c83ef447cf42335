"""Which form log lines take: what the setting says, or what suits standard error."""

import sys

from statesvc.settings.service_settings import TelemetrySettings
from statesvc.telemetry.logs import Format


def log_format(settings: TelemetrySettings) -> Format:
    """`auto` settled for this process: console on a terminal, JSON elsewhere."""
    if settings.log_format == "auto":
        return "console" if sys.stderr.isatty() else "json"
    return settings.log_format
