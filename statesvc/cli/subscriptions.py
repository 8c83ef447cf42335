"""`statesvc subscriptions ...`: who is notified, how that goes, and what to do about it."""

import argparse
import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID, uuid4

from psycopg import AsyncConnection

from events.crypto.keyring import Keyring
from statesvc.background.duration import duration
from statesvc.cli.command_error import CommandError
from statesvc.cli.output import show_progress, write_json, write_line, write_table
from statesvc.cli.session import actor, service_connection
from statesvc.database.keyring_store import load_keyring
from statesvc.database.wakeups.channels import OUTBOX
from statesvc.database.wakeups.waker import notify
from statesvc.delivery.event_catalogue import BY_TYPE, CONNECTION_TEST
from statesvc.delivery.outcome import AttemptOutcome
from statesvc.delivery.targets import Targets
from statesvc.log.archive.folder import archive_folder
from statesvc.log.archive.log_archive import LogArchive
from statesvc.roles.master_key import open_master_keys
from statesvc.settings.service_settings import Settings, load_settings
from statesvc.subscriptions import subscription_store as store
from statesvc.subscriptions.recorded_attempts import LimiterSummary, read_attempts, read_limiter
from statesvc.subscriptions.replay import START, ReplayRequest, read_status, replay
from statesvc.subscriptions.test_delivery import record_test, send_test

_PAGE: Final = 500
_ATTEMPTS: Final = 20
Connection = AsyncConnection[Any]


def configure(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
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
        action = actions.add_parser(name, help=summary, description=summary)
        action.add_argument("id", type=_subscription_id, help="id of the subscription, or its first eight characters")
        action.add_argument("--json", action="store_true", help="for scripts")
        if name == "test":
            action.add_argument(
                "--type", choices=[*BY_TYPE], default=CONNECTION_TEST, help="type of the example to send (default: subscription.test)"
            )
        if name == "replay":
            action.add_argument("--since", type=_instant, required=True, help="RFC 3339, such as 2026-11-23T02:00:00Z")
            action.add_argument("--until", type=_instant, help="exclusive; default: now")
            action.add_argument("--delivered-too", action="store_true", help="send again also what the subscriber has accepted")
            action.add_argument("--dry-run", action="store_true", help="count only, send nothing")
        if name == "rotate-secret":
            action.add_argument("--grace-hours", type=float, default=24.0, help="how long the former secret signs too (default: 24)")


def run(options: argparse.Namespace) -> int:
    """Does it."""
    return asyncio.run(_run(options))


async def _run(options: argparse.Namespace) -> int:
    settings = load_settings()
    async with service_connection(settings) as connection:
        if options.action == "list":
            await _list(connection, as_json=options.json)
            return 0
        subscription = await _find(connection, options.id)
        return await _ACTIONS[options.action](connection, settings, subscription, options)


async def _find(connection: Connection, wanted: str) -> store.Subscription:
    matching = [one for one in await _all(connection) if str(one.subscription_id).startswith(wanted)]
    match matching:
        case [one]:
            return one
        case []:
            raise CommandError(f"there is no subscription {wanted}: `statesvc subscriptions list` names them")
        case _:
            raise CommandError(f"{len(matching)} subscriptions begin with {wanted}: name more of it", exit_code=2)


async def _all(connection: Connection) -> list[store.Subscription]:
    found: list[store.Subscription] = []
    while True:
        after = (found[-1].created_at, found[-1].subscription_id) if found else None
        page = await store.page(connection, owner=None, after=after, limit=_PAGE)
        found += page
        if len(page) < _PAGE:
            return found


async def _list(connection: Connection, *, as_json: bool) -> None:
    found = await _all(connection)
    if as_json:
        write_json([_document(one) for one in found])
        return
    now = datetime.now(UTC)
    write_table(
        ("ID", "STATE", "URL", "OWNER", "FAILING FOR", "LAST ANSWER"),
        [
            (
                one.subscription_id,
                one.state,
                one.url,
                one.owner,
                None if one.failing_since is None else f"{duration((now - one.failing_since).total_seconds())}, {one.failures} tries",
                _answer(one),
            )
            for one in found
        ],
    )


async def _show(connection: Connection, _settings: Settings, one: store.Subscription, options: argparse.Namespace) -> int:
    limiter = await read_limiter(connection, one.subscription_id)
    tries = await read_attempts(connection, one.subscription_id, before=None, limit=_ATTEMPTS)
    if options.json:
        attempts = [
            {
                "webhook_id": each.webhook_id,
                "number": each.number,
                "outcome": each.outcome,
                "status_code": each.status_code,
                "started_at": each.started_at,
                "duration_ms": each.duration_ms,
            }
            for each in tries
        ]
        write_json({**_document(one), "limiter": _limiter(limiter), "attempts": attempts})
        return 0
    for name, value in _document(one).items():
        if value not in (None, "", [], {}):
            write_line(f"{name:<16}{value}")
    write_line(
        f"{'limiter':<16}{limiter.in_flight} of {limiter.limit} under way, breaker {limiter.breaker}, {limiter.notifiers} notifiers"
        + (f", nothing before {limiter.next_allowed_at:%H:%M:%S}" if limiter.next_allowed_at else "")
    )
    write_line("")
    write_table(
        ("STARTED", "TRY", "OUTCOME", "ANSWER", "MS", "WEBHOOK-ID"),
        [
            (each.started_at.isoformat(timespec="seconds"), each.number, each.outcome, each.status_code, each.duration_ms, each.webhook_id)
            for each in tries
        ],
    )
    return 0


async def _pause(connection: Connection, _settings: Settings, one: store.Subscription, _options: argparse.Namespace) -> int:
    await store.turn(connection, one.subscription_id, "pause", actor=actor())
    write_line("paused: what comes is collected and sent once it is resumed")
    return 0


async def _resume(connection: Connection, _settings: Settings, one: store.Subscription, _options: argparse.Namespace) -> int:
    await store.turn(connection, one.subscription_id, "resume", actor=actor())
    await notify(connection, OUTBOX)
    write_line("resumed: what waits is sent now")
    if one.missed_since is not None and one.disabled_at is not None:
        since = f"{one.missed_since:%Y-%m-%dT%H:%M:%SZ}"
        write_line(f"nothing was collected while it was disabled: statesvc subscriptions replay {one.subscription_id} --since {since}")
    return 0


async def _test(connection: Connection, settings: Settings, one: store.Subscription, options: argparse.Namespace) -> int:
    keyring = await _keyring(connection, settings)
    means = await store.signing_means(connection, keyring, one.subscription_id)
    if means is None:
        raise CommandError("the subscription was deleted meanwhile")
    async with Targets(allowed=settings.notifier.subscriber_allow, source=settings.notifier.event_source) as targets:
        sent = await send_test(targets, one.subscription_id, means, kind=options.type)
    await record_test(connection, one.subscription_id, sent)
    came = sent.answer
    if options.json:
        write_json({"webhook_id": sent.webhook_id, "outcome": came.outcome, "status_code": came.status_code, "detail": came.detail})
    else:
        status = "" if came.status_code is None else f" {came.status_code}"
        if came.outcome is AttemptOutcome.ADDRESS_REFUSED:
            write_line("its address lies in a network that subscribers may not be in, as STATESVC_SUBSCRIBER_ALLOW of this shell has it")
        write_line(f"{came.outcome.value}{status} after {came.duration_seconds * 1000:.0f} ms{': ' + came.detail if came.detail else ''}")
    return 0 if came.outcome is AttemptOutcome.DELIVERED else 1


async def _replay(connection: Connection, settings: Settings, one: store.Subscription, options: argparse.Namespace) -> int:
    current = await read_status(connection, one.subscription_id)
    if current is None:
        raise CommandError("the subscription was deleted meanwhile")
    if current.disabled and not options.dry_run:
        raise CommandError("the subscription is disabled: resume it first, so that nothing is missed after the replay")
    until = min(options.until or current.now, current.now)
    if until <= options.since:
        raise CommandError("--until must lie after --since", exit_code=2)
    request = ReplayRequest(
        subscription_id=one.subscription_id,
        since=options.since,
        until=until,
        open_end=options.until is None or options.until >= current.now,
        delivered_too=options.delivered_too,
        dry_run=options.dry_run,
        actor=actor(),
        run_id=uuid4(),
    )
    archive, place, sums = (
        LogArchive(archive_folder(settings)),
        START,
        {"matched": 0, "put": 0, "never_written": 0, "waiting": 0, "delivered": 0},
    )
    while True:
        progress = await replay(connection, request, archive=archive, after=place)
        for name in sums:
            sums[name] += getattr(progress, name)
        show_progress(sums["matched"], sums["matched"] + 1, "notifications", goes_on=True)
        if progress.put and not options.dry_run:
            await notify(connection, OUTBOX)
        if progress.after is None:
            break
        place = progress.after
    if options.json:
        write_json({"run_id": request.run_id, "dry_run": options.dry_run, **sums})
        return 0
    would = "would be sent" if options.dry_run else "are sent"
    write_line(
        f"{sums['put']:,} of {sums['matched']:,} {would} again ({sums['never_written']:,} were never written); "
        f"{sums['waiting']:,} wait anyway, {sums['delivered']:,} it has"
    )
    return 0


async def _rotate(connection: Connection, settings: Settings, one: store.Subscription, options: argparse.Namespace) -> int:
    keyring = await _keyring(connection, settings)
    grace = timedelta(hours=options.grace_hours)
    secret = await store.rotate(connection, keyring, one.subscription_id, grace=grace, actor=actor())
    if secret is None:
        raise CommandError("the subscription was deleted meanwhile")
    if options.json:
        write_json({"secret": secret.shown, "grace_hours": options.grace_hours})
    else:
        write_line(secret.shown)
        write_line(f"shown this once; the former secret signs too for {duration(grace.total_seconds())}")
    return 0


_ACTIONS: Final[dict[str, Callable[[Connection, Settings, store.Subscription, argparse.Namespace], Awaitable[int]]]] = {
    "show": _show,
    "pause": _pause,
    "resume": _resume,
    "test": _test,
    "replay": _replay,
    "rotate-secret": _rotate,
}


async def _keyring(connection: Connection, settings: Settings) -> Keyring:
    return await load_keyring(connection, await open_master_keys(settings, connection))


def _document(one: store.Subscription) -> dict[str, Any]:
    return {"id": one.subscription_id, "state": one.state, **{name: getattr(one, name) for name in _SHOWN}}


_SHOWN: Final = (
    *("url", "owner", "created_at", "created_by", "carriers", "statuses", "types", "shipments", "parcels", "payload", "pii", "signature"),
    *("rate_per_second", "coalesce", "paused_at", "disabled_at", "disabled_why", "missed_since", "failing_since", "failures"),
    *("last_outcome", "last_status_code"),
)


def _limiter(shown: LimiterSummary) -> dict[str, Any]:
    names = ("limit", "in_flight", "mean_latency_seconds", "breaker", "next_allowed_at", "notifiers")
    return {name: getattr(shown, name) for name in names}


def _answer(one: store.Subscription) -> str | None:
    if one.last_outcome is None:
        return None
    return one.last_outcome if one.last_status_code is None else f"{one.last_outcome} {one.last_status_code}"


def _subscription_id(text: str) -> str:
    """At least eight characters of an id."""
    wanted = text.strip().lower()
    try:
        UUID(wanted.ljust(36, "0") if "-" in wanted else wanted.ljust(32, "0"))
    except ValueError:
        raise argparse.ArgumentTypeError("is no id of a subscription") from None
    if len(wanted) < 8:
        raise argparse.ArgumentTypeError("name at least eight characters of the id")
    return wanted


def _instant(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError("is no time: write it as 2026-11-23T02:00:00Z") from None
    return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
