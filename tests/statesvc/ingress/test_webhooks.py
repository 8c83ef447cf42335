"""The call as carriers see it, over a real server and a real database."""

import asyncio
import base64
import hmac
import time
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

from events.crypto.keyring import body_context
from events.crypto.sealing import commitment, unsalted
from statesvc.database.pool import Pool
from statesvc.database.wakeups.wakeup import INBOX
from statesvc.http.keys.key_store import Scope, create_key
from statesvc.ingress.group_commit import ROW_BYTES
from tests.soak.proxy import Proxy

BODY = b'{"scan": "\xff is kept byte for byte"}\n'


async def test_a_message_is_stored_sealed_before_it_is_acknowledged(serve: Any) -> None:
    site = await serve()
    status, answer, headers = await site.post(
        BODY, headers={"credential": "new", "Content-Type": "text/json", "Cookie": "a=b"}
    )
    assert (status, answer["duplicate"]) == (200, False)
    assert headers["Statesvc-Message-Id"] == answer["message_id"]
    ((message_id, carrier_id, sealed_key, body_bytes, stage),) = await site.rows(
        "SELECT message_id, carrier_id, sealed_key, body_bytes, stage FROM statesvc.inbox"
    )
    ((sealed, committed, kept),) = await site.rows(
        "SELECT sealed, commitment, headers FROM statesvc.body"
    )
    assert (message_id, carrier_id, body_bytes, stage) == (
        UUID(answer["message_id"]),
        "acme",
        len(BODY),
        "raw",
    )
    assert (kept["content-type"], "cookie" in kept, "credential" in kept) == (
        "text/json",
        False,
        False,
    )
    context = body_context(message_id)
    content = site.keyring.inbox.unwrap(sealed_key, context).open(sealed, context)
    assert (unsalted(content), commitment(content)) == (BODY, committed)
    assert site.wakes == [INBOX]


async def test_a_retry_gets_the_same_answer_and_makes_no_work(serve: Any) -> None:
    site = await serve()
    _, first, _ = await site.post(BODY)
    _, second, headers = await site.post(BODY)
    _, other, _ = await site.post(BODY + b" ")
    assert (second["message_id"], second["duplicate"]) == (first["message_id"], True)
    assert headers["Statesvc-Message-Id"] == first["message_id"]
    assert other["duplicate"] is False
    assert (
        len(await site.rows("SELECT FROM statesvc.inbox"))
        == len(await site.rows("SELECT FROM statesvc.body"))
        == 2
    )
    assert len(site.wakes) == 2


async def test_the_same_bytes_from_two_carriers_are_two_messages(serve: Any) -> None:
    site = await serve(unsigned=("nosecret",))
    assert (await site.post(BODY))[1]["duplicate"] is False
    assert (await site.post(BODY, "nosecret"))[1]["duplicate"] is False


async def test_the_ack_is_the_carriers_own(serve: Any) -> None:
    site = await serve()
    signed = hmac.new(b"s", BODY, "sha256").hexdigest()
    for _ in range(2):
        status, answer, headers = await site.post(BODY, "signed", {"X-Sign": signed})
        assert (status, answer, headers["Content-Type"]) == (202, b"<Head>OK</Head>", "text/xml")
        UUID(headers["Statesvc-Message-Id"])


async def test_whoever_authenticates_may_push(serve: Any) -> None:
    site = await serve()
    for carrier_id, headers, query in (
        ("acme", {"credential": "old"}, ""),
        ("acme", {}, "?token=new"),
        ("acme", {"Authorization": "Basic " + base64.b64encode(b"new").decode()}, ""),
        ("acme", {"Authorization": "Bearer bootstrap-key-of-the-tests"}, ""),
        ("signed", {"X-Sign": "00", "Authorization": "Bearer bootstrap-key-of-the-tests"}, ""),
        ("nosecret", {"Authorization": "Bearer bootstrap-key-of-the-tests"}, ""),
    ):
        assert (await site.post(BODY, carrier_id, headers, query))[0] in {200, 202}, carrier_id


async def test_who_does_not_is_refused_and_nothing_is_stored(serve: Any) -> None:
    site = await serve()
    for carrier_id, headers, status, code in (
        ("acme", {}, 401, "bad_signature"),
        ("acme", {"credential": "older"}, 401, "bad_signature"),
        ("signed", {}, 401, "bad_signature"),
        (
            "signed",
            {"X-Sign": hmac.new(b"s", BODY + b" ", "sha256").hexdigest()},
            401,
            "bad_signature",
        ),
        ("nosecret", {"credential": "new"}, 401, "unsigned_carrier"),
        ("nobody", {"credential": "new"}, 404, "unknown_carrier"),
    ):
        answered, problem, _ = await site.post(BODY, carrier_id, headers)
        assert (answered, problem["status"], problem["code"]) == (status, status, code), carrier_id
        assert await site.rows("SELECT FROM statesvc.inbox") == [], carrier_id


async def test_allowing_unsigned_pushes_opens_only_carriers_without_a_secret(serve: Any) -> None:
    site = await serve(unsigned=("1",))
    assert (await site.post(BODY, "nosecret", {}))[0] == 200
    assert (await site.post(BODY, "acme", {}))[0] == 401


async def test_only_a_key_with_scope_ingest_may_push(serve: Any, pool: Pool) -> None:
    site = await serve()
    for scope, status in ((Scope.INGEST, 200), (Scope.READ, 401)):
        async with pool.connection() as connection:
            _, key = await create_key(
                connection, name="poller", scopes=[scope], created_by="operator:test"
            )
        assert (await site.post(scope.value.encode(), headers={"Authorization": f"Bearer {key}"}))[
            0
        ] == status


async def test_a_body_over_the_carriers_bound_is_refused(serve: Any) -> None:
    site = await serve()

    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(1_000):
            yield b"x" * 1_000

    assert (await site.post(b"x" * 100_000))[0] == 200
    status, problem, _ = await site.post(chunks())
    assert (status, problem["code"]) == (413, "too_large")


async def test_an_announced_length_over_the_bound_is_refused_before_a_byte_of_it_is_sent(
    serve: Any,
) -> None:
    site = await serve()
    reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
    writer.write(
        b"POST /v1/webhooks/acme HTTP/1.1\r\nHost: x\r\ncredential: new\r\nContent-Length:"
        b" 100001\r\n\r\n"
    )
    async with asyncio.timeout(2):
        assert b" 413 " in await reader.readline()
    writer.close()


async def test_an_unauthenticated_body_is_not_waited_for(serve: Any) -> None:
    site = await serve()
    reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
    writer.write(b"POST /v1/webhooks/acme HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n")
    async with asyncio.timeout(2):
        assert b" 401 " in await reader.readline()
    writer.close()


async def test_a_client_that_hangs_up_in_its_body_leaves_nothing_behind(serve: Any) -> None:
    site = await serve()
    _, writer = await asyncio.open_connection("127.0.0.1", site.port)
    writer.write(
        b"POST /v1/webhooks/acme HTTP/1.1\r\nHost: x\r\ncredential: new\r\nContent-Length:"
        b" 100\r\n\r\nhalf"
    )
    await writer.drain()
    writer.close()
    assert (await site.post(BODY))[0] == 200
    assert len(await site.rows("SELECT FROM statesvc.inbox")) == 1


async def test_more_bytes_than_memory_may_hold_are_shed_at_once(serve: Any) -> None:
    site = await serve(memory_bytes_max=ROW_BYTES + 1_000)
    status, problem, headers = await site.post(b"x" * 1_001)
    assert (status, problem["code"]) == (503, "overloaded")
    assert int(headers["Retry-After"]) > 0
    for body in (b"x" * 1_000, b"y" * 1_000):
        assert (await site.post(body))[0] == 200, "what was stored is given back"


async def test_a_lost_database_is_a_quick_503_until_it_is_back(
    serve: Any, line: Proxy, line_dsn: str
) -> None:
    site = await serve(dsn=line_dsn)
    assert (await site.post(b"before"))[0] == 200
    line.cut()
    for _ in range(3):
        started = time.monotonic()
        status, problem, headers = await site.post(b"during")
        assert (status, problem["code"], "Retry-After" in headers) == (
            503,
            "database_unavailable",
            True,
        )
        assert time.monotonic() - started < 1
    line.heal()
    deadline = time.monotonic() + 10
    while (await site.post(b"during"))[0] != 200:
        assert time.monotonic() < deadline, "never came back"
        await asyncio.sleep(0.05)
    assert len(await site.rows("SELECT FROM statesvc.inbox")) == 2


async def test_the_first_push_after_a_restart_of_the_database_is_taken(
    serve: Any, line: Proxy, line_dsn: str
) -> None:
    site = await serve(dsn=line_dsn)
    assert (await site.post(b"before"))[0] == 200
    line.cut()
    line.heal()
    assert (await site.post(b"after"))[0] == 200


async def test_a_database_that_falls_silent_is_given_up_within_the_deadline(
    serve: Any, line: Proxy, line_dsn: str
) -> None:
    site = await serve(dsn=line_dsn)
    assert (await site.post(b"before"))[0] == 200
    line.stall()
    started = time.monotonic()
    status, problem, _ = await site.post(b"during")
    assert (status, problem["code"]) == (503, "not_durable")
    assert time.monotonic() - started < 3
    started = time.monotonic()
    assert (await site.post(b"during"))[0] == 503
    assert time.monotonic() - started < 0.2, "known to be silent: no second wait"


async def test_acks_are_measured_by_carrier_and_outcome(serve: Any) -> None:
    site = await serve()
    await site.post(BODY)
    await site.post(BODY)
    await site.post(BODY, headers={})
    text = site.telemetry.exposition().decode()
    for outcome in ("accepted", "duplicate", "rejected"):
        assert (
            f'statesvc_ingest_ack_duration_seconds_count{{carrier="acme",outcome="{outcome}"}} 1.0'
            in text
        )
    assert 'statesvc_ingest_duplicates_total{carrier="acme"} 1.0' in text
