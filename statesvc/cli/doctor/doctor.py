"""`statesvc doctor [--settings]`: faults of this installation, in plain words.

Exits with 1 if any check fails.
"""

import argparse
import asyncio
import os
from textwrap import wrap
from typing import Any, Final

from statesvc.cli.doctor.checks import run_checks
from statesvc.cli.output import write_json, write_line, write_table
from statesvc.cli.presentation import Painted
from statesvc.health.finding import Finding, Urgency
from statesvc.settings.known_settings import ENV_FILE, documented_settings
from statesvc.settings.service_settings import read_settings
from statesvc.telemetry.colour import Colour

MARKS: Final = {Urgency.OK: "ok", Urgency.NOTE: "note", Urgency.HUMAN: "WARN", Urgency.NOW: "FAIL"}
_MEANING_WIDTH: Final = 96
_COLOURS: Final = {
    "ok": Colour.GREEN,
    "note": Colour.DIM,
    "WARN": Colour.YELLOW,
    "FAIL": Colour.RED,
}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--settings", action="store_true", help="list every setting, its default and its meaning"
    )
    parser.add_argument("--json", action="store_true", help="for scripts")


def run(options: argparse.Namespace) -> int:
    if options.settings:
        _list_settings(as_json=options.json)
        return 0
    findings = asyncio.run(_findings())
    if options.json:
        write_json(
            [
                {
                    "severity": MARKS[one.urgency].lower(),
                    "about": one.about,
                    "text": one.text,
                    "page": one.page,
                }
                for one in findings
            ]
        )
    else:
        write_table(
            ("", "ABOUT", ""),
            [(_mark(finding), finding.about, _text(finding)) for finding in findings],
        )
    return 1 if any(finding.urgency is Urgency.NOW for finding in findings) else 0


def _mark(finding: Finding) -> Painted:
    mark = MARKS[finding.urgency]
    return Painted(mark, _COLOURS[mark])


def _text(finding: Finding) -> str:
    return (
        finding.text if finding.page is None else f"{finding.text}: statesvc runbook {finding.page}"
    )


async def _findings() -> list[Finding]:
    return [finding async for finding in run_checks(read_settings(), os.environ)]


def _list_settings(*, as_json: bool) -> None:
    """List the settings, never their values: some are secret."""
    rows: list[dict[str, Any]] = [
        {
            "variable": setting.variable,
            "set": setting.variable in os.environ,
            "default": None if setting.default is None else str(setting.default),
            "meaning": setting.meaning,
        }
        for setting in (ENV_FILE, *documented_settings())
    ]
    if as_json:
        write_json(rows)
        return
    for row in rows:
        default = "none" if row["default"] is None else row["default"] or "empty"
        write_line(f"{row['variable']}{'  (set)' if row['set'] else ''}  default: {default}")
        for line in wrap(row["meaning"], _MEANING_WIDTH, break_on_hyphens=False):
            write_line(f"    {line}")
