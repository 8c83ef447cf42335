"""Notifications as Celery tasks, in message protocol 2, with the JSON as the only argument. Pure.

The id of the task is the webhook-id, at every attempt. The body holds the bytes of the notification
as they are; `argsrepr`, which Celery logs and shows, stays empty of it. No header is an integer:
our AMQP client writes types that Celery's cannot read.
"""

import base64
from collections.abc import Mapping
from typing import Any, Final
from uuid import uuid4

import orjson

from statesvc.addons.brokers.kit import CONTENT_TYPE, BrokerUrl, CloudEvent
from statesvc.delivery.target_kind import UrlFlawError

TASK_OPTION: Final = "task"
_TASK_CHARS_MAX: Final = 255
_EMBED: Final = b'{"callbacks":null,"errbacks":null,"chain":null,"chord":null}'


def check_task(url: BrokerUrl) -> None:
    """Raise `UrlFlawError` where the URL's options do not name a task, or hold anything else."""
    url.check_options({TASK_OPTION})
    if not 0 < len(url.options.get(TASK_OPTION, "")) <= _TASK_CHARS_MAX:
        raise UrlFlawError("must name the task: ?task=shop.tasks.shipment_changed")


def task_headers(event: CloudEvent, task: str) -> dict[str, Any]:
    return {
        "lang": "py",
        "task": task,
        "id": event.id,
        "root_id": event.id,
        "parent_id": None,
        "group": None,
        "eta": None,
        "expires": None,
        "timelimit": [None, None],
        "argsrepr": f"(<{event.attributes['type']}>,)",
        "kwargsrepr": "{}",
        "origin": event.attributes["source"],
    }


def task_body(event: CloudEvent) -> bytes:
    """Return the message's body: the arguments, the keyword arguments, and no follow-ups."""
    return b"[[%b],{},%b]" % (event.data, _EMBED)


def redis_message(event: CloudEvent, *, task: str, queue: str) -> bytes:
    """Return the message as kombu lays it out in Redis. Its delivery tag belongs to this copy."""
    properties: Mapping[str, Any] = {
        "correlation_id": event.id,
        "reply_to": "",
        "delivery_mode": 2,
        "delivery_info": {"exchange": "", "routing_key": queue},
        "priority": 0,
        "body_encoding": "base64",
        "delivery_tag": str(uuid4()),
    }
    return orjson.dumps(
        {
            "body": base64.b64encode(task_body(event)).decode(),
            "content-encoding": "utf-8",
            "content-type": CONTENT_TYPE,
            "headers": task_headers(event, task),
            "properties": properties,
        }
    )
