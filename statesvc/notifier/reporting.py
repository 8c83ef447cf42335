"""What the notifier counts and says of its work."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

import structlog

from statesvc.notifier.attempts import AttemptResult
from statesvc.operations.notices import Notice, NoticeKind
from statesvc.telemetry.metrics import Telemetry

_EVENTS: Final = {
    NoticeKind.FAILING: "subscription_failing",
    NoticeKind.DISABLED: "subscription_disabled",
    NoticeKind.RECOVERED: "subscription_recovered",
}

_log = structlog.get_logger()


def count(telemetry: Telemetry, group: Sequence[AttemptResult]) -> None:
    """Counts the attempts of a group by how they ended."""
    for outcome, attempts in Counter(one.answer.outcome for one in group if one.answer is not None).items():
        telemetry.notification_attempts.add(attempts, {"outcome": outcome.value})


def report(telemetry: Telemetry, notices: Sequence[Notice]) -> None:
    """Says each notice, once: call it after the commit."""
    for notice in notices:
        tell = _log.info if notice.kind is NoticeKind.RECOVERED else _log.warning
        about = notice.target.removeprefix("subscription ")
        tell(_EVENTS[notice.kind], subscription_id=about, reason=notice.details.get("why"), count=notice.details.get("failures"))
        telemetry.notices.add(1, {"type": notice.kind.value})
