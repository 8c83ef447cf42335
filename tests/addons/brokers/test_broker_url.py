"""URLs of brokers: taken or refused in which words, and what of them reaches a client."""

import subprocess
import sys
from ipaddress import ip_network

import aio_pika
import pytest
from aiormq.connection import Connection
from yarl import URL

from statesvc.addons.brokers import rabbitmq, table
from statesvc.addons.brokers.kit import split_login
from statesvc.addons.brokers.table import BY_SCHEME
from statesvc.delivery.outgoing import Login
from statesvc.subscriptions.url import UrlRefusedError, checked_url


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


LOOPBACK = (ip_network("127.0.0.0/8"),)
UP = Login("u", "p")


@pytest.mark.parametrize(
    ("text", "url", "login"),
    [
        (
            "nats+tls://broker.invalid/shipments.changed",
            "nats+tls://broker.invalid/shipments.changed",
            None,
        ),
        (
            "nats://u:p%40ss@127.0.0.1:4222/a.b?stream=S",
            "nats://127.0.0.1:4222/a.b?stream=S",
            Login("u", "p@ss"),
        ),
        ("nats+tls://token@broker.invalid/a", "nats+tls://broker.invalid/a", Login("token", None)),
        (
            "amqps://u:p@broker.invalid/%2F/shipments?routing_key=a.b",
            "amqps://broker.invalid/%2F/shipments?routing_key=a.b",
            UP,
        ),
        (
            "amqps://broker.invalid/%2F/?routing_key=queue",
            "amqps://broker.invalid/%2F/?routing_key=queue",
            None,
        ),
        ("amqp://127.0.0.1/a%2Fb/x#part", "amqp://127.0.0.1/a%2Fb/x", None),
        (
            "kafka+tls://u:p@broker.invalid/topic?sasl=SCRAM-SHA-512",
            "kafka+tls://broker.invalid/topic?sasl=SCRAM-SHA-512",
            UP,
        ),
        ("kafka://127.0.0.1:9092/topic", "kafka://127.0.0.1:9092/topic", None),
        (
            "celery+amqps://u:p@broker.invalid/%2F/celery?task=shop.tasks.changed",
            "celery+amqps://broker.invalid/%2F/celery?task=shop.tasks.changed",
            UP,
        ),
        (
            "celery+rediss://:p@broker.invalid/0/celery?task=shop.tasks.changed",
            "celery+rediss://broker.invalid/0/celery?task=shop.tasks.changed",
            Login("", "p"),
        ),
    ],
)
async def test_the_login_is_taken_out_of_what_is_shown(
    text: str, url: str, login: Login | None
) -> None:
    assert await checked_url(text, LOOPBACK) == (url, login)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("nats://8.8.8.8/a", "must be nats\\+tls"),
        ("amqp://8.8.8.8/%2F/x", "must be amqps"),
        # which of the two depends on how the machine's resolver fails
        ("kafka://broker.invalid/topic", "must be kafka\\+tls|address cannot be found"),
        ("nats+tls://10.0.0.1/a", "STATESVC_SUBSCRIBER_ALLOW"),
        ("amqps://169.254.169.254/%2F/x", "STATESVC_SUBSCRIBER_ALLOW"),
        ("kafka+tls://[::ffff:10.0.0.1]/topic", "STATESVC_SUBSCRIBER_ALLOW"),
        ("nats+tls://broker.invalid", "name a subject"),
        ("nats+tls://broker.invalid/a/b", "nats\\+tls://host/subject"),
        ("nats+tls://broker.invalid/a.*", "words of letters"),
        ("nats+tls://broker.invalid/a.%3E", "words of letters"),
        ("nats+tls://broker.invalid/$JS.API.STREAM.PURGE.S", "words of letters"),
        ("nats+tls://broker.invalid/_INBOX.a", "words of letters"),
        ("nats+tls://broker.invalid/a%0D%0APUB", "words of letters"),
        ("nats+tls://broker.invalid/a?stream=a.b", "no stream"),
        ("nats+tls://broker.invalid/a?tls=false", "option"),
        ("nats+tls://broker.invalid/a?stream=a&stream=b", "twice"),
        ("amqps://broker.invalid/exchange", "vhost/exchange"),
        ("amqps://broker.invalid//exchange", "%2F"),
        ("amqps://broker.invalid/%2F/", "routing_key"),
        ("amqps://broker.invalid/%2F/amq.rabbitmq.trace", "broker's own"),
        ("amqps://broker.invalid/%2F/x?no_verify_ssl=1", "option"),
        ("amqps://broker.invalid/%2F/x?cafile=/etc/passwd", "option"),
        ("amqps://user@broker.invalid/%2F/x", "without a password"),
        ("amqps://broker.invalid/%2F/x?routing_key=" + "x" * 256, "255"),
        ("kafka+tls://broker.invalid/a/b", "host/topic"),
        ("kafka+tls://broker.invalid/..", "topic"),
        ("kafka+tls://broker.invalid/a%20b", "topic"),
        ("kafka+tls://u:p@broker.invalid/a?sasl=GSSAPI", "mechanism"),
        ("kafka+tls://broker.invalid/a?sasl=PLAIN", "login"),
        ("redis://broker.invalid/a", "must begin with"),
        ("celery+amqp://8.8.8.8/%2F/q?task=a", "must be celery\\+amqps"),
        ("celery+redis://8.8.8.8/0/q?task=a", "must be celery\\+rediss"),
        ("celery+rediss://10.0.0.1/0/q?task=a", "STATESVC_SUBSCRIBER_ALLOW"),
        ("celery+amqps://broker.invalid/q?task=a", "vhost/queue"),
        ("celery+amqps://broker.invalid/%2F/?task=a", "name the queue"),
        ("celery+amqps://broker.invalid//q?task=a", "%2F"),
        ("celery+amqps://broker.invalid/%2F/q", r"\?task="),
        ("celery+amqps://broker.invalid/%2F/q?task=a&routing_key=b", "option"),
        ("celery+amqps://user@broker.invalid/%2F/q?task=a", "without a password"),
        ("celery+rediss://broker.invalid/celery?task=a", "database/queue"),
        ("celery+rediss://broker.invalid/first/q?task=a", "database by its number"),
        ("celery+rediss://broker.invalid/0/?task=a", "name the queue"),
        ("celery+rediss://broker.invalid/0/q?ssl_cert_reqs=none&task=a", "option"),
        ("celery+rediss://user@broker.invalid/0/q?task=a", "without a password"),
        ("nats+tls:///a", "must begin with"),
        ("https://user:password@broker.invalid/", "signature"),
    ],
)
async def test_a_url_that_cannot_be_notified_is_refused_in_words_that_do_not_repeat_it(
    text: str, says: str
) -> None:
    with pytest.raises(UrlRefusedError, match=says) as refused:
        await checked_url(text, LOOPBACK)
    assert "broker.invalid" not in str(refused.value)


async def test_a_missing_client_is_refused_with_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(table, "find_spec", lambda _package: None)
    for scheme, extra in (
        ("nats+tls", "nats"),
        ("amqps", "rabbitmq"),
        ("kafka+tls", "kafka"),
        ("celery+rediss", "redis"),
    ):
        with pytest.raises(UrlRefusedError, match=rf"pip install 'statesvc\[{extra}\]'"):
            await checked_url(f"{scheme}://broker.invalid/a", ())
    assert await checked_url("https://8.8.8.8/", ()) == ("https://8.8.8.8/", None)
