"""`statesvc subscriptions ...`: list, check and manage subscriptions."""

import argparse
from collections.abc import Mapping
from operator import itemgetter
from typing import Any, Final

from statesvc.cli import declared
from statesvc.cli.api_calls import Calls
from statesvc.cli.id_prefix import one_beginning_with
from statesvc.cli.operation_table import operation_named

_PAGE: Final = 200
_NOTIFICATIONS_SEARCHED: Final = 2_000
_WEBHOOK_ID_CHARS: Final = len("n1-") + 32
_ID_CHARS: Final = (32, 36)


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True)
    declared.add_declared(actions, "subscriptions")


def run(options: argparse.Namespace) -> int:
    return declared.run(options, complete_ids=_complete_ids)


async def _complete_ids(calls: Calls, options: argparse.Namespace) -> None:
    """Complete a command's ids; notifications among the newest `_NOTIFICATIONS_SEARCHED`."""
    if not hasattr(options, "subscription_id"):
        return
    options.subscription_id = await _whole_id(calls, options.subscription_id)
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


async def _whole_id(calls: Calls, wanted: str) -> str:
    if len(wanted) in _ID_CHARS:
        return wanted
    listed = await declared.whole(calls, operation_named("list_subscriptions"), {})
    found = one_beginning_with(wanted, listed["items"], name=itemgetter("id"), what="subscription")
    return str(found["id"])
