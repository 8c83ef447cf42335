"""Brokers, by the scheme of their URLs.

Their clients are optional: a module is imported when it is first needed.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Final, cast

from yarl import URL

from statesvc.addons.brokers.kit import BrokerUrl, Client, read_url


@dataclass(frozen=True, slots=True)
class Scheme:
    """Scheme of URLs. `tls`: the connection is encrypted, and never goes on where it can't be."""

    port: int
    tls: bool


class ClientMissingError(Exception):
    def __init__(self, broker: "Broker") -> None:
        super().__init__(
            f"{broker.name} needs its client, which is not installed here: pip install"
            f" 'statesvc[{broker.extra}]'"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    """`extra`: of our package, which installs `package`.

    Its client is in `module` and logs to `loggers`.
    """

    name: str
    extra: str
    package: str
    module: str
    loggers: Sequence[str]
    schemes: Mapping[str, Scheme]

    @property
    def is_installed(self) -> bool:
        return find_spec(self.package) is not None

    def client(self) -> Client:
        """Load the client. `ClientMissingError` where the library is not installed."""
        if not self.is_installed:
            raise ClientMissingError(self)
        return _client(self.module, *self.loggers)

    def read(self, url: URL) -> BrokerUrl:
        """Parse a URL. Raises UrlFlawError for another form."""
        scheme = self.schemes[url.scheme]
        return read_url(url, default_port=scheme.port, tls=scheme.tls)


BROKERS: Final = (
    Broker(
        name="NATS JetStream",
        extra="nats",
        package="nats",
        module="statesvc.addons.brokers.jetstream",
        loggers=("nats",),
        schemes={"nats": Scheme(4222, tls=False), "nats+tls": Scheme(4222, tls=True)},
    ),
    Broker(
        name="RabbitMQ",
        extra="rabbitmq",
        package="aio_pika",
        module="statesvc.addons.brokers.rabbitmq",
        loggers=("aio_pika", "aiormq"),
        schemes={"amqp": Scheme(5672, tls=False), "amqps": Scheme(5671, tls=True)},
    ),
    Broker(
        name="Kafka",
        extra="kafka",
        package="aiokafka",
        module="statesvc.addons.brokers.kafka",
        loggers=("aiokafka",),
        schemes={"kafka": Scheme(9092, tls=False), "kafka+tls": Scheme(9092, tls=True)},
    ),
    Broker(
        name="Celery on RabbitMQ",
        extra="rabbitmq",
        package="aio_pika",
        module="statesvc.addons.brokers.celery_rabbitmq",
        loggers=("aio_pika", "aiormq"),
        schemes={"celery+amqp": Scheme(5672, tls=False), "celery+amqps": Scheme(5671, tls=True)},
    ),
    Broker(
        name="Celery on Redis",
        extra="redis",
        package="redis",
        module="statesvc.addons.brokers.celery_redis",
        loggers=("redis",),
        schemes={"celery+redis": Scheme(6379, tls=False), "celery+rediss": Scheme(6379, tls=True)},
    ),
)
BY_SCHEME: Final[Mapping[str, Broker]] = {
    scheme: broker for broker in BROKERS for scheme in broker.schemes
}


@cache
def _client(module: str, *loggers: str) -> Client:
    for name in loggers:
        # attempts and notices report an outage of a subscriber, once; a trace for
        # each would only repeat it
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return cast("Client", import_module(module))
