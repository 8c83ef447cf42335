"""A bundle holds what subscribers were sent, word for word, bound by each attempt; not for every
reader, and not after an erasure.
"""

import copy
import json
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
from psycopg import AsyncConnection

from events.vocabulary import Status
from statesvc.addons.evidence.evidence_forms import html_of
from statesvc.addons.evidence.evidence_report import report_of
from statesvc.delivery import attempt_part as evidence
from statesvc.delivery.outcome import AttemptOutcome
from statesvc.notifier.coalesce import Backlog, Coalescer
from statesvc.subscriptions import subscription_store as store
from tests.addons.evidence.test_bundle import (
    NUMBER,
    both,
    bundle_of,
    keys_of,
    resealed_by_a_stranger,
)
from tests.world.deliver import deliver as deliver_as
from tests.world.log_builder import LogBuilder, scan


async def subscribe(log: LogBuilder, **wish: Any) -> None:
    request = store.SubscriptionRequest(url="https://subscriber.invalid/hook", **wish)
    await store.create(log.connection, log.keyring, request, actor="key:test", owner="bootstrap")


async def deliver(log: LogBuilder, *answer: Any, **options: Any) -> list[str]:
    return await deliver_as(log.connection, log.keyring, *answer, **options)


async def notified(log: LogBuilder, *, body: Any = None, **wish: Any) -> list[str]:
    """Notify a new subscriber of a delivery; return the bodies, sealed."""
    await subscribe(log, **wish)
    await log.append(scan(NUMBER, 70, Status.DELIVERED, signed_by="J. Doe"))
    bodies = await deliver(log, **({} if body is None else {"body": body}))
    await log.seal()
    return bodies


async def test_of_a_thin_notification_the_body_is_shown_to_every_reader(
    event_log: LogBuilder,
) -> None:
    bodies = await notified(event_log)
    shown, withheld = await bundle_of(event_log), await bundle_of(event_log, personal=False)
    for bundle in (shown, withheld):
        assert [(row["body"], row["body_state"], row["attempts"]) for row in bundle["sent"]] == [
            (bodies[0], "opened", [1])
        ]
        assert both(bundle, keys_of(bundle)) == (True, True)


async def test_a_full_body_is_shown_as_it_was_sent_to_readers_who_may_see_it(
    event_log: LogBuilder,
) -> None:
    (body,) = await notified(event_log, payload="full", pii=True)
    assert "J. Doe" in body
    shown, withheld = await bundle_of(event_log), await bundle_of(event_log, personal=False)
    assert [(row["body"], row["body_state"]) for row in shown["sent"]] == [(body, "opened")]
    assert [(row["body"], row["body_state"]) for row in withheld["sent"]] == [(None, "withheld")]
    assert "J. Doe" not in json.dumps(withheld)  # its keys and signatures are random Base64
    for bundle in (shown, withheld):
        assert both(bundle, keys_of(bundle)) == (True, True)
        assert [(one.receiver, one.status) for one in report_of(bundle).notified] == [
            ("subscriber.invalid", "delivered")
        ]
    assert "&#34;signed_by&#34;:&#34;J. Doe&#34;" in html_of(report_of(shown)).decode()
    assert "not shown to this reader" in html_of(report_of(withheld)).decode()


@pytest.mark.parametrize("pii", [False, True])
async def test_a_full_body_from_before_they_were_stored_is_made_again(
    event_log: LogBuilder, monkeypatch: pytest.MonkeyPatch, *, pii: bool
) -> None:
    monkeypatch.setattr(evidence, "stores_body", lambda _attempt: False)
    await subscribe(event_log, payload="full", pii=pii)
    await event_log.parcel(NUMBER, steps=2)
    bodies = await deliver(event_log) + await deliver(event_log)
    assert len(bodies) == 2
    await event_log.seal()
    shown = await bundle_of(event_log)
    assert [row["body"] for row in shown["sent"]] == bodies
    assert both(shown, keys_of(shown)) == (True, True)


async def test_one_that_can_not_be_made_again_is_said_to_be_unavailable(
    event_log: LogBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evidence, "stores_body", lambda _attempt: False)
    await notified(event_log, body=lambda _notification: b'{"a body": "of another release"}')
    shown = await bundle_of(event_log)
    assert [(row["body"], row["body_state"]) for row in shown["sent"]] == [(None, "unavailable")]
    assert both(shown, keys_of(shown)) == (True, True)
    assert "its commitment is in" in html_of(report_of(shown)).decode()


async def test_attempts_that_were_sent_different_bodies_are_distinguished(
    database: Any, event_log: LogBuilder
) -> None:
    await subscribe(event_log)
    await event_log.append(scan(NUMBER, 70, Status.DELIVERED))
    thin = await deliver(event_log, AttemptOutcome.REFUSED, 500)
    await database.clock.advance(60)
    await event_log.connection.execute("UPDATE statesvc.subscription SET payload = 'full'")
    full = await deliver(event_log)
    await event_log.seal()
    shown = await bundle_of(event_log)
    assert [(row["body"], row["attempts"]) for row in shown["sent"]] == [
        (thin[0], [1]),
        (full[0], [2]),
    ]
    assert both(shown, keys_of(shown)) == (True, True)


async def test_one_that_stands_for_others_is_shown_with_its_gap_and_the_others_as_left_out(
    event_log: LogBuilder,
) -> None:
    await subscribe(event_log)
    await event_log.parcel(NUMBER, steps=3)
    ((subscription_id,),) = await (
        await event_log.connection.execute("SELECT subscription_id FROM statesvc.subscription")
    ).fetchall()
    backlog = Backlog(subscription_id=subscription_id, too_many=True, too_old=datetime.now(UTC))
    assert await Coalescer().coalesce(event_log.connection, backlog) == 2
    (body,) = await deliver(event_log)
    assert orjson.loads(body)["data"]["gap"]["skipped"] == 2
    await event_log.seal()
    shown = await bundle_of(event_log)
    assert [(row["body"], row["body_state"]) for row in shown["sent"]] == [(body, "opened")]
    assert [one.answer for one in report_of(shown).notified] == [
        "left out: that of statement 3 stood for it",
        "left out: that of statement 3 stood for it",
        "confirmed (HTTP 204, 10 ms)",
    ]
    assert both(shown, keys_of(shown)) == (True, True)


async def test_after_an_erasure_nothing_shows_which_body_it_was(event_log: LogBuilder) -> None:
    await notified(event_log, payload="full", pii=True)
    await event_log.connection.execute(
        "UPDATE statesvc.stream SET sealed_key = NULL, erased_at = now()"
    )
    await event_log.seal()
    shown = await bundle_of(event_log)
    assert [(row["body"], row["body_state"], row["change"]["to"]) for row in shown["sent"]] == [
        (None, "erased", "delivered")
    ]
    assert both(shown, keys_of(shown)) == (True, True)
    assert [one.text for one in report_of(shown).bodies] == ["erased at the person's request"]


async def test_what_was_sent_is_shown_when_the_tables_of_notifications_are_emptied(
    database: Any, event_log: LogBuilder
) -> None:
    (body,) = await notified(event_log, payload="full", pii=True)
    async with await AsyncConnection.connect(database.owner_dsn, autocommit=True) as owner:
        await owner.execute(
            "TRUNCATE statesvc.notification, statesvc.notification_gap, statesvc.open_attempt,"
            " statesvc.outbox"
        )
    shown = await bundle_of(event_log)
    assert [(row["body"], row["body_state"], row["change"]["to"]) for row in shown["sent"]] == [
        (body, "opened", "delivered")
    ]
    assert both(shown, keys_of(shown)) == (True, True)


async def test_another_body_is_found_out_even_where_the_seal_could_be_made(
    event_log: LogBuilder,
) -> None:
    await notified(event_log, payload="full")
    shown = await bundle_of(event_log)
    forged = copy.deepcopy(shown)
    forged["sent"][0]["body"] = forged["sent"][0]["body"].replace("delivered", "returning")
    resealed = resealed_by_a_stranger(forged, shown)
    assert both(resealed, keys_of(resealed)) == (False, False)
    asked_by_nobody = [entry for entry in shown["entries"] if entry["kind"] != "fanout"]
    resealed = resealed_by_a_stranger({**shown, "entries": asked_by_nobody}, shown)
    assert both(resealed, keys_of(resealed)) == (False, True), "only ours knows of fan-outs"


async def test_a_bundle_from_before_attempts_were_distinguished_is_still_reported(
    event_log: LogBuilder,
) -> None:
    await notified(event_log)
    shown = await bundle_of(event_log)
    former = shown | {
        "sent": [
            {
                name: row[name]
                for name in ("webhook_id", "subscription_id", "receiver", "type", "body")
            }
            for row in shown["sent"]
        ]
    }
    assert [one.status for one in report_of(former).notified] == ["delivered"]
    assert [one.text for one in report_of(former).bodies] == [row["body"] for row in shown["sent"]]
