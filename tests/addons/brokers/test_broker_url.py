"""URLs of brokers, and what of them reaches a client."""

import subprocess
import sys

import aio_pika
import pytest
from aiormq.connection import Connection
from yarl import URL

from statesvc.addons.brokers import rabbitmq
from statesvc.addons.brokers.kit import split_login
from statesvc.addons.brokers.table import BROKERS, BY_SCHEME
from statesvc.delivery.outgoing import Login


@pytest.mark.parametrize(
    ("text", "netloc"),
    [
        ("nats+tls://broker.invalid/a", "broker.invalid:4222"),
        ("amqps://broker.invalid/%2F/x", "broker.invalid:5671"),
        ("amqp://broker.invalid:7/%2F/x", "broker.invalid:7"),
        ("kafka+tls://[2001:4860::1]/a", "[2001:4860::1]:9092"),
        ("celery+amqps://broker.invalid/%2F/q?task=a", "broker.invalid:5671"),
        ("celery+rediss://broker.invalid/0/q?task=a", "broker.invalid:6379"),
    ],
)
def test_a_port_that_is_left_out_is_the_protocols_own(text: str, netloc: str) -> None:
    url = URL(text)
    assert BY_SCHEME[url.scheme].read(url).netloc == netloc


@pytest.mark.parametrize(
    ("text", "host", "vhost", "login"),
    [
        (
            "amqps://us%40er:p%2Fw%3A@broker.invalid/%2F/x",
            "broker.invalid",
            "/",
            Login("us@er", "p/w:"),
        ),
        ("amqp://[::1]:7/a%2Fb%3F/x?routing_key=k", "::1", "a/b?", None),
    ],
)
async def test_rabbitmqs_client_gets_what_was_meant_and_no_option_of_the_url(
    text: str, host: str, vhost: str, login: Login | None
) -> None:
    url, found = split_login(URL(text))
    assert found == login
    address = rabbitmq.address(BY_SCHEME[url.scheme].read(url), login)
    client = Connection(address)
    assert (client.url.host, client.vhost) == (host, vhost)
    if login is not None:
        assert (client.url.user, client.url.password) == (login.user, login.password)
    assert set(client.url.query) == {"heartbeat", "name"}
    assert aio_pika.Connection(address).url == address


def test_every_broker_has_a_way_that_is_encrypted_and_a_module() -> None:
    for broker in BROKERS:
        assert any(scheme.tls for scheme in broker.schemes.values())
        assert callable(broker.client().check)
    assert len(BY_SCHEME) == sum(len(broker.schemes) for broker in BROKERS)


@pytest.mark.usefixtures("own_processes")
def test_no_role_loads_a_client_before_it_is_needed() -> None:
    clients = {"nats", "aio_pika", "aiokafka", "redis"}
    program = (
        f"import sys, statesvc.roles.api_role, statesvc.roles.notifier_role; print({clients} &"
        " set(sys.modules))"
    )
    printed = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout
    assert printed.strip() == "set()"
