"""The console at scale, in a real browser: how long each page takes, whether axe-core finds
fault, a picture of each.

`STATESVC_TEST_PICTURES=folder make soak ARGS="-k console"` stores the pictures, for people to look
at.
"""

import statistics
import time
from collections.abc import Iterator
from datetime import date, timedelta
from typing import Final
from uuid import UUID

import pytest
from playwright.async_api import Page

from events.errors import Cause
from events.event import Reading
from events.vocabulary import Kind, Status
from statesvc.delivery.outcome import AttemptOutcome
from statesvc.subscriptions import subscription_store as store
from statesvc.subscriptions.subscription_store import SubscriptionRequest
from tests.statesvc.api.test_dead_letter_replay import bury_messages, open_dead_letters
from tests.world import browser
from tests.world.api import Api, Statement
from tests.world.console import ConsoleClient
from tests.world.deliver import deliver

SCOPES: Final = "admin"
SHIPMENTS: Final = 10_000
DEAD_LETTERS: Final = 1_000
SUBSCRIPTIONS: Final = 500
SERVICES: Final = 40
SHIPMENT: Final = "/console/shipments/ups/1Z00000001"
PAGE_SECONDS_MAX: Final = 0.2
_CARRIERS: Final = ("ups", "fedex", "dhl_unified", "canonical")
_AT_ONCE: Final = 250
_FOUR_DAYS: Final = 4 * 24 * 60


async def _plant(api: Api, scan: Statement) -> dict[str, str]:
    """Fill the database; return what there is one of, by name."""
    for begin in range(0, SHIPMENTS, _AT_ONCE):
        carrier_id = _CARRIERS[begin // _AT_ONCE % len(_CARRIERS)]
        readings = [_promised(scan, number) for number in range(begin, begin + _AT_ONCE)]
        await api.carriers.push(*readings, carrier_id=carrier_id)
        arrived = [_arrived(scan, number) for number in range(begin, begin + _AT_ONCE, 2)]
        await api.carriers.push(*arrived, carrier_id=carrier_id)
    codes = [
        scan(f"1Z{number:08}", None, kind=Kind.UNMAPPED, type="Q", code=f"{number}", minutes=1001)
        for number in range(30)
    ]
    await api.carriers.push(*codes)
    for cause, count in (
        (Cause.UNREADABLE, 400),
        (Cause.UNKNOWN_FORMAT, 300),
        (Cause.NORMALIZER_FAILED, DEAD_LETTERS - 730),
    ):
        await bury_messages(
            api, *[f'"{cause} at line {number % 7}"' for number in range(count)], cause=cause
        )
    subscription_id = await _subscribe(api, scan)
    await _ack_counts(api)
    for number in range(SERVICES):
        stated = {
            "rules": {"stalled": {"in_transit": 24 + number}},
            "why": "a tour",
            "replaces": None,
        }
        answer = await api.call(
            "PUT",
            "/v1/expectations/ups",
            scopes="ops",
            params={"service": f"Service {number}"},
            json=stated,
        )
        assert answer.status == 200, answer.body
    message = (await open_dead_letters(api))[-1]
    letter = await api.get(f"/v1/dead-letters/{message}", scopes="ops")
    lesson = {
        "raw_type": "Q",
        "raw_code": "7",
        "meaning": {"kind": "info"},
        "why": "a tour",
        "replaces": 0,
    }
    taught = await api.call("POST", "/v1/carriers/ups/mappings", scopes="ops", json=lesson)
    assert taught.status in {200, 201}, taught.body
    return {
        "message_page": f"/console/messages/{letter.body['message_id']}",
        "revoke": f"/console/keys/{(await api.key('read')).split('_')[1]}/revoke",
        "subscription": str(subscription_id),
        "message": f"{message}",
        "code": f"{(await open_dead_letters(api))[0]}",
    }


def _promised(scan: Statement, number: int) -> Reading:
    """Build one on its way, of one of many services, and expected on one of four months' days."""
    day = date(2026, 3, 1) + timedelta(days=number % 120)
    service = f"Service {number // 7 % SERVICES}"
    return scan(
        f"1Z{number:08}",
        Status.IN_TRANSIT,
        minutes=number % 1000,
        service=service,
        estimated_delivery=f"{day}",
    )


def _arrived(scan: Statement, number: int) -> Reading:
    return scan(f"1Z{number:08}", Status.DELIVERED, code="D1", minutes=number * 7 % _FOUR_DAYS)


async def _subscribe(api: Api, scan: Statement) -> UUID:
    made = []
    for number in range(SUBSCRIPTIONS):
        request = SubscriptionRequest(
            url=f"https://receiver-{number}.invalid/hooks/shipments",
            carriers=["dpd" if number else "ups"],
        )
        made.append(
            (
                await store.create(
                    api.connection, api.keyring, request, actor="key:soak", owner="bootstrap"
                )
            )[0]
        )
    for number in range(40):
        await api.carriers.push(scan(f"1Z9{number:07}", Status.PICKED_UP))
        came = (AttemptOutcome.DELIVERED, 204) if number % 5 else (AttemptOutcome.REFUSED, 503)
        await deliver(api.connection, api.keyring, *came)
    await api.carriers.execute(
        "INSERT INTO statesvc.subscription_failing (subscription_id, since, failures, last_at,"
        " last_outcome, last_status_code) SELECT subscription_id, c - interval '2 days', 40, c,"
        " 'timeout', NULL FROM statesvc.subscription, statesvc.clock() c ORDER BY created_at DESC"
        " LIMIT 20 ON CONFLICT DO NOTHING"
    )
    await api.carriers.execute(
        "UPDATE statesvc.subscription SET disabled_at = statesvc.clock(), disabled_why = 'took"
        " nothing for 5 days', missed_since = statesvc.clock() - interval '5 days' WHERE url ~"
        " '-7[0-9].invalid'"
    )
    await api.carriers.execute(
        "INSERT INTO statesvc.limiter_state SELECT %s, 'notifier-1', statesvc.clock(), 12, 5,"
        " 0.084, 'half_open', NULL",
        [made[0]],
    )
    return made[0]


async def _ack_counts(api: Api) -> None:
    await api.carriers.execute(
        "INSERT INTO statesvc.ack_count SELECT carrier, date_trunc('minute', c) -"
        " make_interval(mins => m), 'p', 40 + m %% 17, m %% 5, m %% 3, c - make_interval(mins => m)"
        " FROM statesvc.clock() c, unnest(%s::text[]) carrier, generate_series(1, 1430, 7) m",
        [list(_CARRIERS)],
    )
    await api.carriers.execute(
        "INSERT INTO statesvc.worker (worker_id, role, host, pid, version, started_at,"
        " last_seen_at) SELECT 'worker-' || n, 'worker', 'host-' || n, n, '0.1.0', c - interval '1"
        " day', c - make_interval(secs => n) FROM statesvc.clock() c, generate_series(1, 12) n"
    )
    await api.carriers.execute(
        "INSERT INTO statesvc.notice (kind, target, created_at, details) SELECT"
        " 'subscription.failing', 'subscription ' || subscription_id, statesvc.clock(), '{\"host\":"
        ' "receiver.invalid"}\' FROM statesvc.subscription LIMIT 60'
    )


def _screens(one: dict[str, str]) -> Iterator[tuple[str, str]]:
    carriers, letters, subscription = (
        "/console/carriers",
        "/console/dead-letters",
        f"/console/subscriptions/{one['subscription']}",
    )
    group = "kind=message&carrier_id=ups&cause=unreadable"
    yield from {
        "overview": "/console",
        "shipments": "/console/shipments",
        "shipment": SHIPMENT,
        "legal-holds": "/console/legal-holds?all=1",
        "legal-hold": f"{SHIPMENT}/hold",
        "erase": f"{SHIPMENT}/erase",
        "carriers": carriers,
        "carrier": f"{carriers}/ups",
        "carrier-hold": f"{carriers}/ups/hold",
        "carrier-release": f"{carriers}/ups/release",
        "carrier-rollout": f"{carriers}/ups/rollout",
        "carrier-quota": f"{carriers}/ups/quota",
        "code": f"{carriers}/ups/code?raw_type=Q&raw_code=7",
        "teach": f"{carriers}/ups/teach?raw_type=Q&raw_code=7",
        "dead-letters": letters,
        "group": f"{letters}/group?{group}",
        "dead-letter": f"{letters}/{one['message']}",
        "dead-letter-code": f"{letters}/{one['code']}",
        "replay": f"{letters}/replay?{group}",
        "discard": f"{letters}/discard?{group}",
        "replay-one": f"{letters}/{one['message']}/replay",
        "discard-one": f"{letters}/{one['message']}/discard",
        "subscriptions": "/console/subscriptions",
        "subscription": subscription,
        "pause": f"{subscription}/pause",
        "test": f"{subscription}/test",
        "replay-range": f"{subscription}/replay",
        "rotate": f"{subscription}/rotate-secret",
        "resume": f"{subscription}/resume",
        "change": f"{subscription}/change",
        "subscription-create": "/console/subscriptions/create",
        "keys": "/console/keys",
        "key-create": "/console/keys/create",
        "awaited": "/console/awaited",
        "delete": f"{subscription}/delete",
        "expectations": "/console/expectations",
        "expectation-of-all": "/console/expectations/all/change",
        "expectation": "/console/expectations/ups/services/service%207/change",
        "promises": "/console/promises?since=2026-01-01",
        "promises-of-one": "/console/promises?since=2026-01-01&carrier_id=ups&service=service+7",
        "queue": "/console/queue",
        "workers": "/console/workers",
        "notices": "/console/notices",
        "notice-seen": "/console/notices/1/seen",
        "record": "/console/record",
        "message": one["message_page"],
        "group-replayed": f"{letters}/group?kind=message&carrier_id=ups&open=false",
        "revoke": one["revoke"],
        "portal-link": "/console/portal-link?owner=bootstrap",
        "mapping": f"{carriers}/ups/mappings/1",
        "event": f"{SHIPMENT}/events/1",
        "evidence": f"{SHIPMENT}/evidence?for=visa",
        "record-of-one": f"{SHIPMENT}?tab=record",
        "sent": "/console/shipments/ups/1Z90000001?tab=told",
        "waiting": f"{subscription}?tab=waiting",
        "runbook": "/console/runbook",
        "runbook-page": "/console/runbook/Lag",
    }.items()


FILLED: Final = {
    "legal-hold": {},
    "erase": {},
    "carrier-hold": {},
    "carrier-release": {},
    "carrier-rollout": {},
    "teach": {"[name='meaning.status']": "delivered"},
    "replay": {},
    "discard": {},
    "replay-one": {},
    "pause": {},
    "test": {},
    "replay-range": {"#input-since": "2026-01-01T00:00"},
    "rotate": {},
    "expectation": {"[name='stalled.in_transit']": "12"},
    "expectation-of-all": {"[name='overdue']": "3"},
    "change": {"#input-rate_per_second": "5"},
    "key-create": {"#input-name": "desk", "#input-scopes": "read, ops"},
    "delete": {},
    "notice-seen": {},
}
"""The actions whose dry run is shown too, with what is filled in besides the why."""


@pytest.mark.soak
async def test_every_page_is_quick_and_can_be_used(console: ConsoleClient, scan: Statement) -> None:
    one = await _plant(console.api, scan)
    await console.log_in(SCOPES, may_change="on")
    seconds: dict[str, float] = {}
    for name, path in _screens(one):
        taken = []
        for _ in range(9):
            began = time.perf_counter()
            answer = await console.get(path)
            await answer.read()
            taken.append(time.perf_counter() - began)
            assert answer.status == 200, (name, await answer.text())
        seconds[name] = statistics.median(taken)
        # what the run is for
        print(f"{name:18} {1000 * seconds[name]:7.1f} ms, at most {1000 * max(taken):7.1f} ms")  # noqa: T201
    flaws = []
    async with browser.page() as page:
        await console.open(page, SCOPES)
        for name, path in _screens(one):
            flaws += await _visit(page, console, name, path)
    assert flaws == []
    assert {name: taken for name, taken in seconds.items() if taken > PAGE_SECONDS_MAX} == {}


async def _visit(page: Page, console: ConsoleClient, name: str, path: str) -> list[str]:
    flaws = []
    await page.goto(str(console.client.make_url(path)))
    flaws += await _judge(page, name)
    if name in FILLED:
        for field, value in FILLED[name].items():
            await (
                page.select_option(field, value)
                if field == "[name='meaning.status']"
                else page.fill(field, value)
            )
        await page.get_by_label("Why", exact=True).fill("a tour")
        await page.get_by_role("button", name="Show what it would do").click()
        flaws += await _judge(page, f"{name}-would")
    return flaws


async def _judge(page: Page, name: str) -> list[str]:
    flaws = []
    for width, size, scheme in (
        ("desktop", browser.DESKTOP, "light"),
        ("phone", browser.PHONE, "light"),
        ("dark", browser.DESKTOP, "dark"),
        ("phone-dark", browser.PHONE, "dark"),
    ):
        await page.set_viewport_size(size)
        await page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        flaws += [f"{name} {width}: {fault}" for fault in await browser.faults(page)]
        if wider := await browser.sideways(page):
            flaws.append(f"{name} {width}: {wider} pixels wider than the window")
        await browser.photograph(page, f"{name}-{width}")
    return flaws
