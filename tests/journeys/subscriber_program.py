"""A subscriber's program with the client: it knows nothing of us but `statesvc_client`.

URL and KEY in the environment.

`python subscriber_program.py STEP ARGUMENT...` takes one step and prints what it came to as JSON.
"""

import json
import os
import sys
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from statesvc_client import Client
from statesvc_client.core.api.subscriptions import create_portal_link
from statesvc_client.core.models.portal_link_request import PortalLinkRequest


def subscribe(client: Client, url: str) -> dict[str, Any]:
    made = client.subscriptions.create(url, name="journey", carriers=["ups"])
    assert [each.id for each in client.subscriptions.list()] == [made.id]
    assert client.subscriptions.get(made.id).name == "journey"
    return {"id": str(made.id), "secret": made.secret}


def failures(client: Client, subscription_id: str) -> int:
    return sum(
        attempt.outcome != "delivered"
        for attempt in client.subscriptions.attempts(UUID(subscription_id), page_size=1)
    )


def replay(client: Client, subscription_id: str, since: str, dry_run: str = "") -> int:
    """Return how many are sent again, or would be."""
    began = datetime.fromisoformat(since)
    parts = client.subscriptions.replay(
        UUID(subscription_id), since=began, delivered_too=True, dry_run=bool(dry_run)
    )
    return sum(part.put for part in parts)


def rotate(client: Client, subscription_id: str) -> str:
    """Return the new secret; the former one signs too."""
    secret: str = client.subscriptions.rotate_secret(
        UUID(subscription_id), grace_hours=24, why="a year has passed"
    ).secret
    return secret


def told(client: Client, subscription_id: str) -> list[dict[str, Any]]:
    """Return what the service says that it sent, the newest first."""
    subscription = UUID(subscription_id)
    listed = [*client.subscriptions.notifications(subscription, outcome="delivered", page_size=2)]
    bodies = [
        client.subscriptions.notification(subscription, each.webhook_id).body for each in listed
    ]
    return [
        {"id": each.webhook_id, "tries": len(each.attempts), "body": body}
        for each, body in zip(listed, bodies, strict=True)
    ]


def resend(client: Client, subscription_id: str, webhook_id: str) -> str:
    resent: str = client.subscriptions.resend(
        UUID(subscription_id), webhook_id, why="it was lost here"
    ).webhook_id
    return resent


def open_portal(client: Client) -> str:
    """Return the path of a link to the portal."""
    path: str = create_portal_link.sync(client=client.core, body=PortalLinkRequest()).path
    return path


STEPS: Final[dict[str, Callable[..., Any]]] = {
    step.__name__: step for step in (subscribe, failures, replay, rotate, told, resend, open_portal)
}

if __name__ == "__main__":
    with Client(os.environ["URL"], key=os.environ["KEY"]) as opened:
        json.dump(STEPS[sys.argv[1]](opened, *sys.argv[2:]), sys.stdout)
