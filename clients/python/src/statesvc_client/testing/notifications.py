"""Notifications as the service signs them, without a service."""

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from statesvc.delivery.event_catalogue import BY_TYPE
from statesvc.delivery.notification import body as body_of
from statesvc.delivery.signing import signed_headers
from statesvc.subscriptions.subscription_secrets import Secret
from statesvc_client import signatures

# Secret that notifications of tests are signed with. Known to everyone.
SECRET = "whsec_dGhlIHNlY3JldCBvZiB0aGUgdGVzdGluZyBraXQhISE="  # noqa: S105 - of tests


@dataclass(frozen=True)
class SignedNotification:
    """A request to your webhook: post `body` with `headers`."""

    headers: Mapping[str, str]
    body: bytes = field(repr=False)

    @property
    def id(self) -> str:
        """The `webhook-id`, by which it is recognised when it comes again."""
        return self.headers["webhook-id"]

    @property
    def json(self) -> dict[str, Any]:
        """Document that `verify` returns for it."""
        parsed: dict[str, Any] = json.loads(self.body)
        return parsed


def signed_notification(
    kind: str = "shipment.status_changed",
    *,
    secret: str = SECRET,
    webhook_id: str | None = None,
    full: bool = False,
    **data: Any,
) -> SignedNotification:
    """Make a notification of a type of the catalogue: its example, with `data` over it, signed now.

    Args:
        kind: Such as `shipment.status_changed`; `docs/events.md` lists them.
        secret: `whsec_...`, as your receiver is set.
        webhook_id: The same once more is a repeat. Default: a new one.
        full: The example of subscriptions with `"payload": "full"`.
        data: Members of `data`, such as `tracking_number="1Z..."`; `from` is given as `from_`.
    """
    if kind not in BY_TYPE:
        raise ValueError(f"no such type; there are {', '.join(BY_TYPE)}")
    given = {name.removesuffix("_"): value for name, value in data.items()}
    example = BY_TYPE[kind].example("full" if full else "thin", pii=False)
    now, webhook_id = signatures.clock(), webhook_id or f"n1-{uuid.uuid4().hex}"
    body = body_of(kind, datetime.fromtimestamp(now, UTC), {**example, **given})
    headers = signed_headers(
        [Secret.chosen(secret).key], webhook_id=webhook_id, timestamp=int(now), body=body
    )
    return SignedNotification(headers, body)
