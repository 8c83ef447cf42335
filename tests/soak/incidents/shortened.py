"""The committed alert rules with their time made short: windows, waits and offsets, and nothing
else. Thresholds are the real ones.
"""

import re
from pathlib import Path
from typing import Any, Final

import yaml

RULES: Final = Path(__file__).parents[3] / "deploy" / "prometheus" / "rules.yml"
_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_SPAN: Final = re.compile(r"(?<=\[)(\d+)([smhd])(?=\])|(?<=offset )(\d+)([smhd])")
_SILENCE: Final = re.compile(r"(\d+) \* 3600")
"""Silence of a carrier, which CarrierSilent compares with its own windows."""
_PREDICTED: Final = re.compile(r"(?<=, )86400(?=\))")


def seconds(span: str) -> float:
    """Parse `5m` and the like."""
    return float(span[:-1]) * _UNITS[span[-1]]


def rules() -> Any:
    return yaml.safe_load(RULES.read_text("utf-8"))


def shortened(factor: float) -> dict[str, Any]:
    """Return the rules as Prometheus takes them, `factor` times shorter; evaluated every second."""
    document: dict[str, Any] = rules()
    for group in document["groups"]:
        group["interval"] = "1s"
        for rule in group["rules"]:
            rule["expr"] = _shorter(rule["expr"], factor)
            if "for" in rule:
                rule["for"] = _span(seconds(rule["for"]) / factor)
    return document


def waits() -> dict[str, tuple[float, bool]]:
    """Return for each alert how long its condition must last in the committed rules, and whether
    that condition looks at windows.
    """
    return {
        rule["alert"]: (
            seconds(rule["for"]),
            "[" in rule["expr"] or ":" in rule["expr"].split(" ")[0],
        )
        for group in rules()["groups"]
        for rule in group["rules"]
        if "alert" in rule
    }


def _shorter(expression: str, factor: float) -> str:
    text = _SPAN.sub(lambda found: _span(seconds(found[0]) / factor), expression)
    text = _SILENCE.sub(lambda found: f"{float(found[1]) * 3600 / factor:g}", text)
    return _PREDICTED.sub(f"{86_400 / factor:g}", text)


def _span(length: float) -> str:
    return f"{round(length * 1000)}ms"
