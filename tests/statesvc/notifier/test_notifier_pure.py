"""The pure parts of notifying: signatures, schedule, addresses, verdicts, slots."""

import base64
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address, IPv6Address, ip_network

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks.webhooks import Webhook

from statesvc.delivery.addresses import may_connect
from statesvc.delivery.notification import Notification, body_of
from statesvc.delivery.outcome import AttemptOutcome, EndOutcome, RetryLater, next_step, outcome_of
from statesvc.delivery.retry_schedule import (
    ATTEMPTS_MAX,
    DELAYS_SECONDS,
    next_delay_seconds,
    parse_retry_after,
)
from statesvc.delivery.signing import signed_headers
from statesvc.subscriptions.subscription_secrets import Secret, live, rotated

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def now_seconds() -> int:
    return int(datetime.now(UTC).timestamp())


@given(st.binary(min_size=24, max_size=64), st.text())
def test_an_independent_library_accepts_each_signature(secret: bytes, text: str) -> None:
    body = orjson.dumps({"text": text.encode("utf-8", "ignore").decode()})
    headers = signed_headers([secret], webhook_id="n1-00", timestamp=now_seconds(), body=body)
    assert Webhook(base64.b64encode(secret).decode()).verify(body, headers) == orjson.loads(body)


def test_a_former_secret_ends_with_its_grace_and_a_second_rotation_ends_the_oldest() -> None:
    first, second, third = Secret.fresh(), Secret.fresh(), Secret.fresh()
    once = rotated([first], second, now=NOW, grace=timedelta(hours=1))
    assert live(once, NOW) == (second.key, first.key)
    assert live(once, NOW + timedelta(hours=1)) == (second.key,)
    assert live(rotated(once, third, now=NOW, grace=timedelta(hours=1)), NOW) == (
        third.key,
        second.key,
    )
    assert live(rotated([first], second, now=NOW, grace=timedelta(0)), NOW) == (second.key,)


def test_the_body_is_that_of_the_contract() -> None:
    notification = Notification(
        webhook_id="n1-00",
        type="shipment.status_changed",
        created_at=NOW,
        occurred_at=NOW - timedelta(hours=1),
        carrier_id="ups",
        tracking_number="1Z-INVENTED",
        from_status="in_transit",
        to_status="delivered",
        sequence=7,
    )
    assert orjson.loads(body_of(notification)) == {
        "type": "shipment.status_changed",
        "timestamp": "2026-03-01T12:00:00+00:00",
        "data": {
            "carrier_id": "ups",
            "tracking_number": "1Z-INVENTED",
            "from": "in_transit",
            "to": "delivered",
            "occurred_at": "2026-03-01T11:00:00+00:00",
            "sequence": 7,
        },
    }


@given(st.floats(0, 1))
def test_failures_are_retried_ever_later_for_about_two_days_then_no_more(jitter: float) -> None:
    delays = [
        next_delay_seconds(attempts, retry_after_seconds=None, jitter=jitter)
        for attempts in range(1, ATTEMPTS_MAX)
    ]
    for planned, delay in zip(DELAYS_SECONDS, delays, strict=True):
        assert delay is not None
        assert planned <= delay <= planned * 1.2
    assert delays == sorted(delays, key=lambda delay: delay or 0)
    assert next_delay_seconds(ATTEMPTS_MAX, retry_after_seconds=1.0, jitter=jitter) is None


@given(st.floats(0, 1e9), st.floats(0, 1), st.integers(1, ATTEMPTS_MAX - 1))
def test_retry_after_is_never_undercut_within_its_clamp(
    asked: float, jitter: float, attempts: int
) -> None:
    delay = next_delay_seconds(attempts, retry_after_seconds=asked, jitter=jitter)
    clamped = min(max(asked, 1), 86_400)
    assert delay is not None
    assert clamped <= delay <= clamped * 1.2 + 1e-6


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("120", 120),
        (" 7 ", 7),
        ("9" * 400, 999_999_999_999),
        ("-5", None),
        ("soon", None),
        ("", None),
        ("Sun, 01 Mar 2026 12:02:00 GMT", 120),
        ("Sun, 01 Mar 2026 11:00:00 GMT", 0),
        ("Sun, 01 Mar 99999 11:00:00 GMT", None),
    ],
)
def test_retry_after_is_read_as_seconds_or_date(value: str | None, seconds: float | None) -> None:
    assert parse_retry_after(value, now=NOW) == seconds


@given(st.text(max_size=60))
def test_retry_after_never_raises(value: str) -> None:
    parse_retry_after(value, now=NOW)


def test_what_follows_from_each_outcome() -> None:
    def verdict(outcome: AttemptOutcome, attempts: int = 1) -> object:
        return next_step(outcome, attempts=attempts, retry_after_seconds=None, jitter=0)

    assert verdict(AttemptOutcome.DELIVERED) == EndOutcome.DELIVERED
    assert verdict(AttemptOutcome.GONE) == RetryLater(5, disable=True)
    assert verdict(AttemptOutcome.GONE, ATTEMPTS_MAX) == RetryLater(86_400, disable=True), (
        "stays for when someone enables it again"
    )
    for outcome in set(AttemptOutcome) - {AttemptOutcome.DELIVERED, AttemptOutcome.GONE}:
        assert verdict(outcome) == RetryLater(5)
        assert verdict(outcome, ATTEMPTS_MAX) == EndOutcome.GIVEN_UP


def test_only_2xx_is_delivered_and_only_410_is_gone() -> None:
    for status in range(100, 600):
        outcome = outcome_of(status)
        assert (outcome is AttemptOutcome.DELIVERED) == (200 <= status <= 299)
        assert (outcome is AttemptOutcome.GONE) == (status == 410)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.8.9.1",
        "0.0.0.0",  # noqa: S104 - an address to judge, nothing binds it
        "10.1.2.3",
        "172.16.0.1",
        "172.31.255.255",
        "192.168.1.1",
        "100.64.0.1",
        "100.100.100.200",
        "169.254.169.254",
        "168.63.129.16",
        "192.0.0.192",
        "198.18.0.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "::7f00:1",
        "64:ff9b::7f00:1",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::1",
        "2002:7f00:1::",
        "2002:a9fe:a9fe::1",
        "2001:0:1::1",
        "2001:db8::1",
        "fe80::1",
        "fe80::1%eth0",
        "fc00::1",
        "fd00:ec2::254",
        "fec0::1",
        "ff02::1",
    ],
)
def test_no_subscriber_lives_at(address: str) -> None:
    assert not may_connect(address, ())


@pytest.mark.parametrize(
    "address",
    [
        "93.184.216.34",
        "8.8.8.8",
        "172.32.0.1",
        "100.128.0.1",
        "2606:4700::1111",
        "64:ff9b::808:808",
        "::ffff:8.8.8.8",
    ],
)
def test_subscribers_live_on_the_internet(address: str) -> None:
    assert may_connect(address, ())


@given(st.ip_addresses(v=4))
def test_an_ipv4_address_is_judged_alike_in_every_disguise(address: IPv4Address) -> None:
    number = int(address)
    disguises = [
        IPv6Address((0xFFFF << 32) | number),
        IPv6Address((0x64FF9B << 96) | number),
    ]
    for disguise in disguises:
        assert may_connect(str(disguise), ()) == may_connect(str(address), ())
    assert not may_connect(str(IPv6Address((0x2002 << 112) | (number << 80))), ())


@given(st.ip_addresses())
def test_nothing_that_python_knows_as_private_is_open(address: IPv4Address | IPv6Address) -> None:
    plain = getattr(address, "ipv4_mapped", None) or address
    if (
        plain.is_private
        or plain.is_loopback
        or plain.is_link_local
        or plain.is_multicast
        or plain.is_unspecified
    ):
        assert not may_connect(str(address), ())


def test_the_allow_list_opens_its_networks_only() -> None:
    allowed = (ip_network("127.0.0.0/8"), ip_network("fd00::/8"))
    assert may_connect("127.0.0.1", allowed)
    assert may_connect("::ffff:127.0.0.1", allowed)
    assert may_connect("fd12::1", allowed)
    assert not may_connect("10.0.0.1", allowed)
    assert not may_connect("::1", allowed)
