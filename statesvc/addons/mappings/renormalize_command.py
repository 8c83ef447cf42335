"""`statesvc renormalize --carrier C [--since T] [--read-by VERSION] [--dry-run]`.

Reads history again and appends corrections.
"""

import argparse
import asyncio
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from statesvc.cli.api_calls import Json, work
from statesvc.cli.operation_table import add_fields
from statesvc.cli.output import write_json, write_line, write_table
from statesvc.cli.service_calls import api_calls

_OPERATION: Final = "renormalize_carrier"
_STATED: Final = ("since", "read_by", "per_second", "dry_run", "why")


def configure(parser: argparse.ArgumentParser) -> None:
    add_fields(parser, _OPERATION, "carrier_id", *_STATED)
    parser.add_argument(
        "--no-notify",
        dest="notify",
        action="store_false",
        default=None,
        help="send no subscription what the corrections change",
    )
    parser.add_argument("--json", action="store_true", help="for scripts")


def run(options: argparse.Namespace) -> int:
    """Read with the stable version and the mappings that stand."""
    report = asyncio.run(_run(options))
    if options.json:
        write_json(report)
    else:
        _write(report)
    return 0


async def _run(options: argparse.Namespace) -> Mapping[str, Json]:
    stated = (*_STATED, "notify")
    order = {name: value for name in stated if (value := getattr(options, name)) is not None}
    found: dict[str, Counter[tuple[str, ...]]] = {name: Counter() for name in ("changes", "moved")}
    beyond: Counter[str] = Counter()
    codes: dict[str, list[Json]] = {"codes": [], "codes_left": []}
    report: dict[str, Json] = {}
    async with api_calls(options) as calls:
        async for progress, part in work(
            calls, _OPERATION, order, counted="messages", carrier_id=options.carrier_id
        ):
            for name, counted in (("changes", "events"), ("moved", "shipments")):
                found[name].update({(row["from"], row["to"]): row[counted] for row in part[name]})
            beyond.update(part["beyond"])
            for name, listed in codes.items():
                listed += [code for code in part[name] if code not in listed]
            report = {**part, **progress.sums}
    return {
        **{
            name: value
            for name, value in report.items()
            if name not in {"remaining", "next_cursor"}
        },
        "changes": [
            {"from": before, "to": now, "events": count}
            for (before, now), count in found["changes"].most_common()
        ],
        "moved": [
            {"from": before, "to": now, "shipments": count}
            for (before, now), count in found["moved"].most_common()
        ],
        "beyond": beyond,
        **codes,
    }


def _write(report: Mapping[str, Any]) -> None:
    would = "would be " if report["dry_run"] else ""
    write_line(
        f"{report['messages']} messages with {report['events']} events read again, {report['unchanged']} as before"
    )
    write_line(
        f"{report['corrected']} {would}corrected, {report['retracted']} {would}taken back, {report['added']} {would}added"
    )
    if report["changes"]:
        write_table(
            ("IN EFFECT", "NOW", "EVENTS"),
            [(row["from"], row["to"], row["events"]) for row in report["changes"]],
        )
    if report["notifications"]:
        write_line(f"{report['notifications']} notifications")
    if report["unreadable"]:
        write_line(
            f"{report['unreadable']} could not be read again: their message was erased or is stored no longer, their codes alone do not "
            "say what they mean, and no mapping names them. They stand as they were read."
        )
    for name, count in report["beyond"].items():
        write_line(
            f"{count} differ in {name}, which no correction can change: they stand as they were read"
        )
