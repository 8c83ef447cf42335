"""Texts about holds and processes, the same on the command line and the console."""

from collections.abc import Iterator, Mapping
from typing import Any

from statesvc.background.duration import duration


def would_hold(queue: Mapping[str, Any]) -> Iterator[str]:
    """Describe the effect of a hold on a queue. Its `carrier_id` may be `all`."""
    yield "Messages are still acknowledged and stored, and none is processed until a release."
    yield (
        f"{_waiting(queue, 'ready'):,} that are ready now would wait. Nothing is lost. In effect at"
        " the next claim of every worker."
    )


def would_release(queue: Mapping[str, Any]) -> Iterator[str]:
    yield (
        f"{_waiting(queue, 'held'):,} messages that wait are processed, the oldest first, and so is"
        " what comes."
    )


def _waiting(queue: Mapping[str, Any], state: str) -> int:
    wanted = queue["carrier_id"]
    return sum(
        lane[state]
        for carrier_id, lane in queue["carriers"].items()
        if wanted in {"all", "*", carrier_id}
    )


def several_versions(workers: Mapping[str, Any]) -> Iterator[str]:
    """Warn that processes of several releases run."""
    versions = sorted(
        {
            each["version"]
            for each in workers["items"]
            if each["version"] and each["state"] == "alive"
        }
    )
    if len(versions) > 1:
        yield f"Several versions run: {', '.join(versions)}."


def seen_ago(worker: Mapping[str, Any]) -> str | None:
    seconds = worker["seen_seconds_ago"]
    return None if seconds is None else f"{duration(seconds)} ago"


def oldest_ready(lane: Mapping[str, Any]) -> str | None:
    return _lasted(lane["oldest_ready_seconds"])


def oldest_held(lane: Mapping[str, Any]) -> str | None:
    return _lasted(lane["oldest_held_seconds"])


def _lasted(seconds: float | None) -> str | None:
    return None if seconds is None else duration(seconds)


def notifications(queue: Mapping[str, Any]) -> str:
    """Count the notifications that wait."""
    states = (("ready", "ready"), ("leased", "on their way"), ("scheduled", "to be tried later"))
    waiting = [
        f"{queue['outbox'][state]:,} {words}" for state, words in states if queue["outbox"][state]
    ]
    return f"Notifications: {', '.join(waiting)}." if waiting else "No notification waits."


def waiting_dead_letters(queue: Mapping[str, Any]) -> str:
    return f"Dead letters: {queue['dead_letters']:,}."


def capped(queue: Mapping[str, Any]) -> Iterator[str]:
    if queue["counts_capped"]:
        yield "The largest counts mean: at least that many."


def quota(changed: Mapping[str, Any]) -> str:
    bound = changed["in_flight_max"]
    bounded = "no bound" if bound is None else f"at most {bound} in flight"
    return (
        f"{changed['carrier_id']}: weight {float(changed['weight']):g}, {bounded}; in effect at the"
        " next claim"
    )
