"""URLs of brokers: those that are taken, and in what words the others are refused."""

import pytest

from statesvc.addons.brokers import table
from statesvc.delivery.addresses import parse_networks
from statesvc.delivery.outgoing import Login
from statesvc.subscriptions.url import UrlRefusedError, checked_url

LOOPBACK = parse_networks(["127.0.0.0/8"])
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
