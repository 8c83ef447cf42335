"""Subscriptions: who is told of changes (scope `subscriptions`)."""

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Unpack
from urllib.parse import quote
from uuid import UUID

from statesvc_client.aio.resource import Resource
from statesvc_client.answers import value
from statesvc_client.arguments import checked
from statesvc_client.core import models
from statesvc_client.core.api.subscriptions import (
    delete_subscription,
    get_notification,
    get_subscription,
    pause_subscription,
    replay_subscription,
    resend_notification,
    resume_subscription,
    rotate_subscription_secret,
    test_subscription,
)
from statesvc_client.core.arguments import (
    AttemptFilters,
    NotificationFilters,
    SubscriptionChanges,
    SubscriptionFields,
    SubscriptionFilters,
)
from statesvc_client.core.types import UNSET

PATH = "/v1/subscriptions"


def _path(subscription_id: UUID) -> str:
    return f"{PATH}/{quote(str(subscription_id), safe='')}"


class Subscriptions(Resource):
    """Fields of a subscription are those of the API: `carriers`, `statuses`, `types`, `payload`,
    `rate_per_second`, ...
    """

    async def create(
        self, url: str, *, why: str | None = None, **fields: Unpack[SubscriptionFields]
    ) -> models.SubscriptionMade:
        """Subscribe; the answer has the `secret`, which is shown this once."""
        body = {"url": url, **checked(fields, SubscriptionFields)}
        return await self._send("POST", PATH, models.SubscriptionMade, body, why)

    def list(
        self, *, page_size: int = 100, **filters: Unpack[SubscriptionFilters]
    ) -> AsyncIterator[models.SubscriptionShown]:
        """Iterate over the subscriptions of the key's owner."""
        chosen = checked(filters, SubscriptionFilters)
        return self._items(PATH, models.SubscriptionShownPage, chosen, page_size)

    async def get(self, subscription_id: UUID) -> models.SubscriptionDetail:
        """Return a subscription with how its receiver does."""
        return value(
            (await get_subscription.asyncio_detailed(subscription_id, client=self._core)).parsed
        )

    async def change(
        self,
        subscription_id: UUID,
        *,
        why: str | None = None,
        **fields: Unpack[SubscriptionChanges],
    ) -> models.SubscriptionShown:
        """Change the given fields; the others stay."""
        body = checked(fields, SubscriptionChanges)
        return await self._send(
            "PATCH", _path(subscription_id), models.SubscriptionShown, body, why
        )

    async def delete(self, subscription_id: UUID, *, why: str | None = None) -> None:
        """Unsubscribe."""
        await delete_subscription.asyncio_detailed(
            subscription_id, client=self._core, statesvc_why=why or UNSET
        )

    async def pause(
        self, subscription_id: UUID, *, why: str | None = None
    ) -> models.SubscriptionShown:
        """Hold notifications back; what comes meanwhile waits."""
        answer = await pause_subscription.asyncio_detailed(
            subscription_id, client=self._core, statesvc_why=why or UNSET
        )
        return value(answer.parsed)

    async def resume(
        self, subscription_id: UUID, *, why: str | None = None
    ) -> models.SubscriptionShown:
        """Send again, beginning with what waits."""
        answer = await resume_subscription.asyncio_detailed(
            subscription_id, client=self._core, statesvc_why=why or UNSET
        )
        return value(answer.parsed)

    async def rotate_secret(
        self, subscription_id: UUID, *, grace_hours: float = 24.0, why: str | None = None
    ) -> models.SubscriptionMade:
        """Make a new secret; the old one signs too for `grace_hours`. Never repeated by itself."""
        answer = await rotate_subscription_secret.asyncio_detailed(
            subscription_id, client=self._core, grace_hours=grace_hours, statesvc_why=why or UNSET
        )
        return value(answer.parsed)

    async def test(self, subscription_id: UUID, *, why: str | None = None) -> models.TrialShown:
        """Send one signed example and return how the receiver answered."""
        answer = await test_subscription.asyncio_detailed(
            subscription_id, client=self._core, statesvc_why=why or UNSET
        )
        return value(answer.parsed)

    async def replay(
        self,
        subscription_id: UUID,
        *,
        since: datetime,
        until: datetime | None = None,
        delivered_too: bool = False,
        dry_run: bool = False,
        why: str | None = None,
    ) -> AsyncIterator[models.ReplayProgress]:
        """Send a range again, in parts: iterate to the end. `delivered_too`: also what was taken
        already; `dry_run`: only count.
        """
        cursor: str | None = None
        while True:
            body = models.ReplayInput(
                since=since,
                until=until,
                delivered_too=delivered_too,
                dry_run=dry_run,
                cursor=cursor,
            )
            answer = await replay_subscription.asyncio_detailed(
                subscription_id, client=self._core, body=body, statesvc_why=why or UNSET
            )
            part = value(answer.parsed)
            yield part
            cursor = part.next_cursor
            if cursor is None:
                return

    def attempts(
        self,
        subscription_id: UUID,
        *,
        page_size: int = 100,
        **filters: Unpack[AttemptFilters],
    ) -> AsyncIterator[models.AttemptShown]:
        """Iterate over the attempts, the newest first."""
        path, chosen = f"{_path(subscription_id)}/attempts", checked(filters, AttemptFilters)
        return self._items(path, models.AttemptShownPage, chosen, page_size)

    def notifications(
        self,
        subscription_id: UUID,
        *,
        page_size: int = 100,
        **filters: Unpack[NotificationFilters],
    ) -> AsyncIterator[models.NotificationShown]:
        """Iterate over the notifications with their attempts, the newest first."""
        path = f"{_path(subscription_id)}/notifications"
        return self._items(
            path, models.NotificationShownPage, checked(filters, NotificationFilters), page_size
        )

    async def notification(
        self, subscription_id: UUID, webhook_id: str, *, personal: bool = False
    ) -> models.NotificationDetail:
        """Return a notification with its body as it was sent; `personal`: also one with personal
        fields, and what was answered.
        """
        answer = await get_notification.asyncio_detailed(
            subscription_id,
            webhook_id,
            client=self._core,
            include="personal" if personal else UNSET,
        )
        return value(answer.parsed)

    async def resend(
        self, subscription_id: UUID, webhook_id: str, *, why: str | None = None
    ) -> models.NotificationShown:
        """Send a notification again, under its id."""
        answer = await resend_notification.asyncio_detailed(
            subscription_id, webhook_id, client=self._core, statesvc_why=why or UNSET
        )
        return value(answer.parsed)
