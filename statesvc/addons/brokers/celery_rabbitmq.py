"""Celery on RabbitMQ: `celery+amqps://[user:password@]host[:5671]/vhost/queue?task=NAME`.

A task goes to the default exchange under its queue's name, as a persistent message that a worker of
Celery's runs; it is confirmed as every message to RabbitMQ is, and unroutable where no worker
declared the queue yet.
"""

from typing import Final

import aio_pika

from statesvc.addons.brokers import rabbitmq
from statesvc.addons.brokers.celery_message import TASK_OPTION, check_task, task_body, task_headers
from statesvc.addons.brokers.kit import CONTENT_TYPE, BrokerUrl, CloudEvent, Dialler
from statesvc.delivery.outgoing import Login
from statesvc.delivery.target_kind import UrlFlawError

_DEFAULT_EXCHANGE: Final = ""


def check(url: BrokerUrl, login: Login | None) -> None:
    """Raise `UrlFlawError` where no task can be published to such a URL."""
    _, queue = url.segments("vhost", "queue")
    if not queue:
        raise UrlFlawError("must name the queue that a worker reads")
    check_task(url)
    rabbitmq.check_names(url.path[0], queue)
    rabbitmq.check_login(login)


async def connect(url: BrokerUrl, login: Login | None, dialler: Dialler) -> rabbitmq.RabbitMq:
    """Open a connection with a confirming channel."""
    task = url.options[TASK_OPTION]

    def message_of(event: CloudEvent) -> aio_pika.Message:
        return aio_pika.Message(
            task_body(event),
            headers=task_headers(event, task),
            content_type=CONTENT_TYPE,
            content_encoding="utf-8",
            delivery_mode=aio_pika.DeliveryMode.PERSISTENT,
            correlation_id=event.id,
            message_id=event.id,
        )

    return await rabbitmq.open_exchange(
        url,
        login,
        dialler,
        exchange=_DEFAULT_EXCHANGE,
        routing_key=url.path[1],
        message_of=message_of,
    )
