"""The small pure parts: ids, kept headers, bounds, breaker."""

from pathlib import Path

import orjson
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict, CIMultiDictProxy

from events.carriers.carrier import Basic, Hmac, SharedHeader
from statesvc.bodies.sealed_message import message_id, new_message_id
from statesvc.ingress.body_memory import MemoryBound
from statesvc.ingress.carrier_authenticator import RetainedHeaders
from statesvc.ingress.database_breaker import DatabaseBreaker
from statesvc.ingress.disk_room import DiskRoom


@given(st.integers(0, 2**48 - 1), st.binary(min_size=10, max_size=10))
def test_a_message_id_is_a_uuid_of_version_7_that_holds_its_time(
    unix_ms: int, random: bytes
) -> None:
    made = message_id(unix_ms, random)
    assert (made.version, made.variant, made.int >> 80) == (7, "specified in RFC 4122", unix_ms)


def test_message_ids_differ() -> None:
    assert len({new_message_id() for _ in range(1000)}) == 1000


def test_headers_that_prove_the_push_are_kept_and_credentials_are_not() -> None:
    kept = RetainedHeaders(
        [
            Hmac(header="X-Acme-Signature"),
            Hmac(header="Authorization"),
            SharedHeader(header="credential"),
            Basic(),
        ]
    )
    sent = {
        "Content-Type": "text/xml",
        "X-Acme-Signature": "abc",
        "Webhook-Id": "w1",
        "Authorization": "Basic eA==",
        "Cookie": "a=b",
        "credential": "secret",
        "X-Api-Key": "secret",
        "X-Forwarded-For": "10.0.0.1",
    }
    document = orjson.loads(kept.document(CIMultiDictProxy(CIMultiDict(sent))))
    assert document == {"content-type": "text/xml", "x-acme-signature": "abc", "webhook-id": "w1"}


def test_a_header_that_is_no_utf_8_is_kept_as_latin_1() -> None:
    sent = CIMultiDictProxy(
        CIMultiDict({"User-Agent": b"caf\xe9".decode("utf-8", "surrogateescape")})
    )
    assert orjson.loads(RetainedHeaders([]).document(sent)) == {"user-agent": "café"}


def test_memory_is_bounded_and_given_back() -> None:
    memory = MemoryBound(10)
    assert memory.take(7)
    assert not memory.take(4)
    assert memory.take(3, is_large=True)
    memory.give_back(7)
    memory.give_back(3, is_large=True)
    assert memory.has_room(10)
    assert not memory.has_room(11)


def test_disk_room_is_looked_at_once_a_second(tmp_path: Path) -> None:
    times = iter([0.0, 0.5, 1.0])
    assert DiskRoom(None, free_bytes_min=2**62).is_enough()
    assert DiskRoom(tmp_path, free_bytes_min=0).is_enough()
    full = DiskRoom(tmp_path, free_bytes_min=2**62, now=lambda: next(times))
    assert not full.is_enough()
    assert not full.is_enough()


def test_an_open_breaker_lets_one_probe_through_after_each_pause() -> None:
    breaker = DatabaseBreaker(pause_seconds=1)
    assert breaker.lets_through(0)
    breaker.failed(0)
    assert not breaker.lets_through(0.9)
    assert breaker.lets_through(1.0)
    assert not breaker.lets_through(1.1), "the probe is under way"
    assert breaker.lets_through(2.1), "a probe that never reports is given up"
    breaker.failed(2.2)
    assert not breaker.lets_through(2.3)
    assert breaker.lets_through(3.2)
    breaker.succeeded()
    assert breaker.lets_through(3.3)
    assert breaker.lets_through(3.3)
