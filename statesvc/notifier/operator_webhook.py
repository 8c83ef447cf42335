"""The operator's webhook: each notice is posted there, signed like any notification and
retried on the same schedule.

The operator of the service names it, so it may have any address. A notice that it never accepts
stays in `GET /v1/notices`.
"""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

import orjson
import structlog
from psycopg import AsyncConnection

from events.entry.kinds import rfc3339
from statesvc.database.pool import Connections
from statesvc.database.queries import queries
from statesvc.delivery.http_sender import HttpSender
from statesvc.delivery.outcome import AttemptOutcome
from statesvc.delivery.retry_schedule import next_delay_seconds
from statesvc.delivery.signing import signed_headers

LEASE_SECONDS: Final = 60.0
AGE_SECONDS_MAX: Final = 7 * 24 * 3600.0
AT_ONCE: Final = 16

_SQL = queries("statesvc.notifier", "operator_webhook")
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Due:
    notice_id: int
    kind: str
    target: str
    created_at: datetime
    details: dict[str, Any]
    sends: int
    now: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorWebhook:
    """Address of the operator's notices.

    `sender` must be open while it is used; `keys` sign, the current key first.
    """

    sender: HttpSender
    url: str = field(repr=False)
    keys: Sequence[bytes] = field(repr=False)

    async def notify(self, pool: Connections) -> int:
        """Post a bounded number of due notices.

        Returns how many were accepted. Holds no database connection meanwhile.
        """
        async with pool.connection() as connection:
            cursor = await connection.execute(
                _SQL["claim"],
                {"lease_seconds": LEASE_SECONDS, "age_seconds": AGE_SECONDS_MAX, "limit": AT_ONCE},
            )
            fields = ("notice_id", "kind", "target", "created_at", "details", "sends", "now")
            due = [_Due(**dict(zip(fields, row, strict=True))) for row in await cursor.fetchall()]
        if not due:
            return 0
        accepted = await asyncio.gather(*(self._post(one) for one in due))
        async with pool.connection() as connection:
            for one, is_accepted in zip(due, accepted, strict=True):
                await _settle(connection, one, accepted=is_accepted)
        return sum(accepted)

    async def _post(self, due: _Due) -> bool:
        body = orjson.dumps(
            {
                "type": due.kind,
                "timestamp": rfc3339(due.created_at),
                "data": {"notice_id": due.notice_id, "target": due.target, **due.details},
            }
        )
        headers = signed_headers(
            self.keys,
            webhook_id=f"o1-{due.notice_id}",
            timestamp=int(due.now.timestamp()),
            body=body,
        )
        answer = await self.sender.send(self.url, headers=headers, body=body)
        if answer.outcome is not AttemptOutcome.DELIVERED:
            _log.warning(
                "operator_not_notified",
                notice_id=due.notice_id,
                outcome=answer.outcome.value,
                status_code=answer.status_code,
            )
        return answer.outcome is AttemptOutcome.DELIVERED


async def _settle(connection: AsyncConnection[Any], due: _Due, *, accepted: bool) -> None:
    # spreads retries, guards nothing
    delay = next_delay_seconds(due.sends, retry_after_seconds=None, jitter=random.random())  # noqa: S311
    await connection.execute(
        _SQL["settle"], {"notice_id": due.notice_id, "accepted": accepted, "delay": delay}
    )
