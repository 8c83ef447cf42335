"""`statesvc subscriptions ...`: who is notified, how that goes, and what to do about it."""

import argparse
import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from operator import itemgetter
from typing import Any, Final

from statesvc.background.duration import duration
from statesvc.cli import declared
from statesvc.cli.api_calls import Calls, work
from statesvc.cli.command_error import CommandError
from statesvc.cli.id_prefix import one_beginning_with, shown_ids
from statesvc.cli.operation_table import add_fields
from statesvc.cli.output import cell, time_of, write_answer, write_json, write_line, write_table
from statesvc.cli.service_calls import api_calls
from statesvc.delivery.outcome_words import outcome_words

_PAGE: Final = 200
_ATTEMPTS: Final = 20
_NOTIFICATIONS_SEARCHED: Final = 2_000
_WEBHOOK_ID_CHARS: Final = len("n1-") + 32
_TEST: Final = "subscription.test"
_LIMITER: Final = (
    "limit",
    "in_flight",
    "mean_latency_seconds",
    "breaker",
    "next_allowed_at",
    "notifiers",
)
_ATTEMPT: Final = ("webhook_id", "number", "outcome", "status_code", "started_at", "duration_ms")
_SUMS: Final = ("matched", "put", "never_written", "waiting", "delivered")


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True)
    listed = actions.add_parser("list", help="list subscriptions and how they do")
    listed.add_argument("--json", action="store_true", help="for scripts")
    for name, summary in (
        ("show", "one, with its limiter and its last tries"),
        ("pause", "send nothing for now; what comes is collected"),
        ("resume", "send again, also after the service disabled it"),
        ("test", "send a test and print the answer"),
        ("replay", "send a range again: what it missed, under the same webhook-ids"),
        ("rotate-secret", "a new secret; the former one signs too for a while"),
    ):
        action = actions.add_parser(name, help=summary)
        action.add_argument(
            "id",
            type=_subscription_id,
            help="id of the subscription, or as many characters of it as are unique",
        )
        action.add_argument("--json", action="store_true", help="for scripts")
        if name != "show":
            action.add_argument("--why", default="", help="recorded in the log")
        if name == "test":
            action.add_argument(
                "--type", default=_TEST, help=f"type of the example to send (default: {_TEST})"
            )
        if name == "replay":
            action.add_argument(
                "--since",
                type=_instant,
                required=True,
                help="RFC 3339, such as 2026-11-23T02:00:00Z",
            )
            action.add_argument("--until", type=_instant, help="exclusive; default: now")
            action.add_argument(
                "--delivered-too",
                action="store_true",
                help="send again also what the subscriber has accepted",
            )
            action.add_argument("--dry-run", action="store_true", help="count only, send nothing")
        if name == "rotate-secret":
            add_fields(action, "rotate_subscription_secret", "grace_hours")
    declared.add_declared(actions, "subscriptions")


def run(options: argparse.Namespace) -> int:
    return (
        declared.run(options, complete_ids=_complete_ids)
        if hasattr(options, "declared")
        else asyncio.run(_run(options))
    )


async def _run(options: argparse.Namespace) -> int:
    async with api_calls(options) as calls:
        if options.action == "list":
            await _list(calls, as_json=options.json)
            return 0
        return await _ACTIONS[options.action](calls, await _find(calls, options.id), options)


async def _find(calls: Calls, wanted: str) -> Mapping[str, Any]:
    if _is_whole(wanted):
        found: Mapping[str, Any] = await calls.call("get_subscription", subscription_id=wanted)
        return found
    return one_beginning_with(wanted, await _all(calls), name=itemgetter("id"), what="subscription")


async def _complete_ids(calls: Calls, options: argparse.Namespace) -> None:
    """Complete the ids that a command takes; a notification's, of the newest `_NOTIFICATIONS_SEARCHED`."""
    if not hasattr(options, "subscription_id"):
        return
    options.subscription_id = (await _find(calls, options.subscription_id))["id"]
    if len(getattr(options, "webhook_id", " " * _WEBHOOK_ID_CHARS)) >= _WEBHOOK_ID_CHARS:
        return
    newest: list[Mapping[str, Any]] = []
    cursor = None
    while len(newest) < _NOTIFICATIONS_SEARCHED:
        page = await calls.call(
            "list_notifications",
            subscription_id=options.subscription_id,
            limit=_PAGE,
            cursor=cursor,
        )
        newest, cursor = [*newest, *page["items"]], page["next_cursor"]
        if cursor is None:
            break
    listing = f"statesvc subscriptions notifications {options.subscription_id}"
    found = one_beginning_with(
        options.webhook_id,
        newest,
        name=itemgetter("webhook_id"),
        what="notification",
        where=listing,
    )
    options.webhook_id = found["webhook_id"]


async def _all(calls: Calls) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = []
    cursor = None
    while True:
        page = await calls.call("list_subscriptions", limit=_PAGE, cursor=cursor)
        found += page["items"]
        cursor = page["next_cursor"]
        if cursor is None:
            return found


async def _list(calls: Calls, *, as_json: bool) -> None:
    found = await _all(calls)
    if as_json:
        write_json(found)
        return
    now = datetime.now(UTC)
    write_table(
        ("ID", "NAME", "STATE", "URL", "OWNER", "FAILING FOR", "LAST ANSWER"),
        [
            (
                shown,
                one["name"],
                one["state"],
                one["url"],
                one["owner"],
                _failing(one, now),
                _answer(one),
            )
            for shown, one in zip(shown_ids([one["id"] for one in found]), found, strict=True)
        ],
        wide=("OWNER",),
    )


def _failing(one: Mapping[str, Any], now: datetime) -> str | None:
    failing = one["failing"]
    if failing is None:
        return None
    return f"{duration((now - datetime.fromisoformat(failing['since'])).total_seconds())}, {failing['failures']} tries"


def _answer(one: Mapping[str, Any]) -> str | None:
    failing = one["failing"] or {}
    return outcome_words(failing.get("last_outcome"), failing.get("last_status_code")) or None


async def _show(calls: Calls, one: Mapping[str, Any], options: argparse.Namespace) -> int:
    shown = await calls.call("get_subscription", subscription_id=one["id"])
    tries = (await calls.call("list_attempts", subscription_id=one["id"], limit=_ATTEMPTS))["items"]
    limiter = shown.pop("limiter")
    if options.json:
        attempts = [{name: attempt[name] for name in _ATTEMPT} for attempt in tries]
        write_json(
            {**shown, "limiter": {name: limiter[name] for name in _LIMITER}, "attempts": attempts}
        )
        return 0
    limits = shown.pop("give_up_after_seconds")
    shown["give_up_after"] = ", ".join(
        f"{kind} {duration(seconds)}" for kind, seconds in limits.items() if seconds is not None
    )
    for name, value in shown.items():
        if value not in (None, "", [], {}):
            write_line(f"{name:<16}{cell(value)}")
    next_allowed = limiter["next_allowed_at"]
    write_line(
        f"{'limiter':<16}{limiter['in_flight']} of {limiter['limit']} under way, breaker {limiter['breaker']}, "
        f"{limiter['notifiers']} notifiers"
        + (f", nothing before {time_of(next_allowed)}" if next_allowed else "")
    )
    write_line("")
    columns = ("started_at", "number", "outcome", "status_code", "duration_ms", "webhook_id")
    rows = [
        [time_of(attempt[name]) if name == "started_at" else attempt[name] for name in columns]
        for attempt in tries
    ]
    write_table(("STARTED", "TRY", "OUTCOME", "ANSWER", "MS", "WEBHOOK-ID"), rows)
    return 0


async def _pause(calls: Calls, one: Mapping[str, Any], options: argparse.Namespace) -> int:
    paused = await calls.call("pause_subscription", why=options.why, subscription_id=one["id"])
    write_answer(
        "paused: what comes is collected and sent once it is resumed", paused, as_json=options.json
    )
    return 0


async def _resume(calls: Calls, one: Mapping[str, Any], options: argparse.Namespace) -> int:
    resumed = await calls.call("resume_subscription", why=options.why, subscription_id=one["id"])
    write_answer("resumed: what waits is sent now", resumed, as_json=options.json)
    if one["missed_since"] is not None and one["disabled_at"] is not None and not options.json:
        since = f"{datetime.fromisoformat(one['missed_since']).astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
        write_line(
            f"nothing was collected while it was disabled: statesvc subscriptions replay {one['id']} --since {since}"
        )
    return 0


async def _test(calls: Calls, one: Mapping[str, Any], options: argparse.Namespace) -> int:
    came = await calls.call(
        "test_subscription", {"type": options.type}, why=options.why, subscription_id=one["id"]
    )
    if options.json:
        write_json(came)
    else:
        if came["outcome"] == "address_refused":
            write_line(
                "its address lies in a network that subscribers may not be in, as STATESVC_SUBSCRIBER_ALLOW has it"
            )
            write_line(
                "this command read that, as it has no --url: the service's own settings come with --env-file FILE"
            )
        said = outcome_words(came["outcome"], came["status_code"])
        write_line(
            f"{said} after {came['duration_ms']} ms{': ' + came['detail'] if came['detail'] else ''}"
        )
    return 0 if came["outcome"] == "delivered" else 1


async def _replay(calls: Calls, one: Mapping[str, Any], options: argparse.Namespace) -> int:
    order = {
        "since": options.since.isoformat(),
        "delivered_too": options.delivered_too,
        "dry_run": options.dry_run,
        **({} if options.until is None else {"until": options.until.isoformat()}),
    }
    sums: Mapping[str, int] = {}
    run_id = None
    async for progress, answer in work(
        calls,
        "replay_subscription",
        order,
        counted="notifications",
        why=options.why,
        subscription_id=one["id"],
    ):
        sums, run_id = progress.sums, answer["run_id"]
        if datetime.fromisoformat(answer["until"]) <= options.since:
            raise CommandError("the end of the range must lie after --since", exit_code=2)
    if options.json:
        write_json(
            {"run_id": run_id, "dry_run": options.dry_run, **{name: sums[name] for name in _SUMS}}
        )
        return 0
    would = "would be sent" if options.dry_run else "are sent"
    write_line(
        f"{sums['put']:,} of {sums['matched']:,} {would} again ({sums['never_written']:,} were never written); "
        f"{sums['waiting']:,} wait anyway, {sums['delivered']:,} it has"
    )
    return 0


async def _rotate(calls: Calls, one: Mapping[str, Any], options: argparse.Namespace) -> int:
    hours = {} if options.grace_hours is None else {"grace_hours": options.grace_hours}
    made = await calls.call(
        "rotate_subscription_secret", why=options.why, subscription_id=one["id"], **hours
    )
    if options.json:
        write_json({"secret": made["secret"], **hours})
    else:
        write_line(made["secret"])
        write_line(
            f"shown this once; the former secret signs too for {duration(3600 * hours.get('grace_hours', 24.0))}"
        )
    return 0


_ACTIONS: Final[
    dict[str, Callable[[Calls, Mapping[str, Any], argparse.Namespace], Awaitable[int]]]
] = {
    "show": _show,
    "pause": _pause,
    "resume": _resume,
    "test": _test,
    "replay": _replay,
    "rotate-secret": _rotate,
}


def _subscription_id(text: str) -> str:
    """Return an id, or the first characters of one."""
    wanted = text.strip().lower()
    if not wanted or wanted.strip("0123456789abcdef-"):
        raise argparse.ArgumentTypeError(f"{text!r} is no id of a subscription")
    return wanted


def _is_whole(wanted: str) -> bool:
    return len(wanted) in {32, 36}


def _instant(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError("invalid timestamp; use 2026-11-23T02:00:00Z") from None
    return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
