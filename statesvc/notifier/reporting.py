"""Notices that were committed, as log lines and as a count."""

from collections.abc import Sequence
from typing import Final

import structlog

from statesvc.notices.store import Notice, NoticeKind
from statesvc.telemetry.metrics import Telemetry

_EVENTS: Final = {
    NoticeKind.FAILING: "subscription_failing",
    NoticeKind.DISABLED: "subscription_disabled",
    NoticeKind.RECOVERED: "subscription_recovered",
}

_log = structlog.get_logger()


def report(telemetry: Telemetry, notices: Sequence[Notice]) -> None:
    """Says each, once: call it after the commit."""
    for notice in notices:
        tell = _log.info if notice.kind is NoticeKind.RECOVERED else _log.warning
        about = notice.target.removeprefix("subscription ")
        tell(_EVENTS[notice.kind], subscription_id=about, reason=notice.details.get("why"), count=notice.details.get("failures"))
        telemetry.notices.add(1, {"type": notice.kind.value})
