"""`statesvc rollout drill CARRIER`: rehearse the way back from another fleet's share."""

import argparse
import asyncio
import time
from collections.abc import Mapping
from typing import Any, Final

from statesvc.cli.api_calls import Calls
from statesvc.cli.command_error import CommandError
from statesvc.cli.operation_table import add_fields
from statesvc.cli.output import write_json, write_line
from statesvc.cli.service_calls import api_calls

_LOOK_SECONDS: Final = 0.1


def configure(parser: argparse.ArgumentParser) -> None:
    add_fields(parser, "get_rollout", "carrier_id", arguments=["carrier_id"])
    parser.add_argument(
        "--seconds", type=float, default=60.0, help="how long to wait at 0 (default: 60)"
    )
    parser.add_argument("--json", action="store_true", help="for scripts")


def run(options: argparse.Namespace) -> int:
    return asyncio.run(_run(options))


async def _run(options: argparse.Namespace) -> int:
    async with api_calls(options) as calls:
        return await drill(calls, options.carrier_id, seconds=options.seconds, as_json=options.json)


async def drill(calls: Calls, carrier_id: str, *, seconds: float, as_json: bool) -> int:
    """Set the share to 0 until the present messages are done, and back; return 1 if any are left.

    They are those that waited or were leased at that moment.
    """
    rollout = await calls.call("get_rollout", carrier_id=carrier_id)
    if not rollout["readings"] or not rollout["percent"]:
        raise CommandError(
            f"{carrier_id}: no other fleet has a share of it, so there is no way back to rehearse",
            exit_code=2,
        )
    if rollout["warnings"]:
        # nobody would take over, and what waits would wait for the fallback
        raise CommandError(
            f"{carrier_id}: a drill would strand messages, and prove nothing:"
            f" {'; '.join(rollout['warnings'])}",
            exit_code=2,
        )
    asked_at = time.monotonic()
    at_zero = await calls.call(
        "change_rollout", {"percent": 0, "why": "drill: the way back"}, carrier_id=carrier_id
    )
    turned_at = time.monotonic()
    try:
        held = _of(at_zero, "candidate")["leased"]
        taken, finished, stranded = await _until_nothing_is_left(
            calls, carrier_id, turned_at, seconds=seconds
        )
    finally:
        again = {"percent": rollout["percent"], "force": True, "why": "drill: forth again"}
        await calls.call("change_rollout", again, carrier_id=carrier_id)
    if as_json:
        seconds_until = {"set": turned_at - asked_at, "taken": taken, "finished": finished}
        write_json(
            {
                "carrier_id": carrier_id,
                "held": held,
                "stranded": stranded,
                "seconds": seconds_until,
                "percent": rollout["percent"],
            }
        )
        return 1 if stranded else 0
    write_line(
        f"{carrier_id}: at 0 % after {turned_at - asked_at:.2f} s; what waited was leased by the"
        f" stable reader {_said(taken)}"
    )
    write_line(f"the candidate held {held} messages, and had ended them {_said(finished)}")
    write_line(f"stranded: {stranded}; at {rollout['percent']} % again")
    return 1 if stranded else 0


async def _until_nothing_is_left(
    calls: Calls, carrier_id: str, turned_at: float, *, seconds: float
) -> tuple[float | None, float | None, int]:
    """Return the seconds until stable had leased the backlog and the candidate ended its leases.

    Then the rest of both.
    """
    taken: float | None = None
    finished: float | None = None
    while True:
        rollout = await calls.call("get_rollout", carrier_id=carrier_id)
        passed = time.monotonic() - turned_at
        stable, candidate = _of(rollout, "stable"), _of(rollout, "candidate")
        is_late = (stable["oldest_seconds"] or 0.0) > passed
        taken = passed if taken is None and not is_late else taken
        finished = passed if finished is None and not candidate["leased"] else finished
        if (taken is not None and finished is not None) or passed > seconds:
            left = stable["waiting"] if taken is None else 0
            return taken, finished, left + (candidate["leased"] if finished is None else 0)
        await asyncio.sleep(_LOOK_SECONDS)


def _of(rollout: Mapping[str, Any], role: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = next(
        reading for reading in rollout["readings"] if reading["role"] == role
    )
    return found


def _said(seconds: float | None) -> str:
    return "not yet" if seconds is None else f"after {seconds:.2f} s"
