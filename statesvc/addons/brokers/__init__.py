"""Message brokers as subscribers: NATS JetStream, RabbitMQ, Kafka, and Celery on RabbitMQ or Redis.

The notifier treats them like webhooks; only the attempt differs: a CloudEvent, or a task for
Celery, published and confirmed over a kept connection. Another broker is a module here, with
`check` and `connect`, and a line in `table.BROKERS`.
"""

from typing import Final

from statesvc.seams import AddOn

ADDON: Final = AddOn(
    schemes=(
        "nats",
        "nats+tls",
        "amqp",
        "amqps",
        "kafka",
        "kafka+tls",
        "celery+amqp",
        "celery+amqps",
        "celery+redis",
        "celery+rediss",
    ),
    targets="statesvc.addons.brokers.links:BROKER_TARGETS",
)
