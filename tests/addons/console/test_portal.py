"""The portal: an owner's subscriptions behind a link that expires, and nothing of anyone else."""

import html
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import orjson
import pytest
from aiohttp import CookieJar
from aiohttp.test_utils import TestClient
from freezegun import freeze_time

from events.vocabulary import Status
from statesvc.addons.console.portal import CALLS, DEEDS
from statesvc.api.subscriptions.subscription_operations import ONE, PATH
from statesvc.delivery.outcome import AttemptOutcome
from statesvc.http.keys.key_store import Scope, create_key
from statesvc.http.keys.signed_token import TokenSigner
from statesvc.subscriptions.key_revocation import revoke_key
from tests.world.api import Api
from tests.world.console import ConsoleClient
from tests.world.deliver import deliver

LINKS = f"{PATH}/portal-links"
LIST = "/portal/subscriptions"


@dataclass
class Portal:
    """Owners with keys and subscriptions, and a browser without a browser for each visit."""

    api: Api
    _clients: list[TestClient[Any, Any]] = field(default_factory=list)

    async def key(self, owner: str, *scopes: Scope) -> str:
        _, key = await create_key(
            self.api.connection, name=owner, scopes=scopes, created_by="test", owner=owner
        )
        return key

    async def call(self, key: str, path: str, body: Any) -> tuple[int, Any]:
        answer = await self.api.client.post(
            path, json=body, headers={"Authorization": f"Bearer {key}"}
        )
        return answer.status, await answer.json()

    async def subscribe(self, key: str, **wish: Any) -> str:
        status, made = await self.call(key, PATH, {"url": "https://shop.invalid/hook", **wish})
        assert status == 201, made
        return str(made["id"])

    async def link(self, key: str, **wish: Any) -> str:
        status, made = await self.call(key, LINKS, wish)
        assert status == 201, made
        return str(made["path"])

    def console(self) -> ConsoleClient:
        client: TestClient[Any, Any] = TestClient(
            self.api.client.server, cookie_jar=CookieJar(unsafe=True)
        )
        self._clients.append(client)
        return ConsoleClient(self.api, client)

    async def visit(self, path: str) -> ConsoleClient:
        console = self.console()
        entered = await console.get(path)
        assert (entered.status, entered.headers["Location"]) == (303, LIST)
        return console

    async def close(self) -> None:
        for client in self._clients:
            await client.session.close()


@pytest.fixture
async def portal(api: Api) -> AsyncIterator[Portal]:
    made = Portal(api)
    yield made
    await made.close()


def page(subscription_id: str) -> str:
    return f"{LIST}/{subscription_id}"


async def html_of(console: ConsoleClient, path: str, status: int = 200) -> str:
    answer = await console.get(path)
    assert answer.status == status
    return html.unescape(await answer.text())


async def test_a_link_opens_its_owners_subscriptions_and_the_token_leaves_the_address(
    portal: Portal,
) -> None:
    shop, other = (
        await portal.key("shop", Scope.SUBSCRIPTIONS),
        await portal.key("other", Scope.SUBSCRIPTIONS),
    )
    mine, theirs = (
        await portal.subscribe(shop),
        await portal.subscribe(other, url="https://other.invalid/hook"),
    )
    path = await portal.link(shop)
    console = portal.console()
    entered = await console.get(path)
    cookie = entered.cookies["statesvc-portal"]
    assert (entered.status, entered.headers["Location"]) == (303, LIST)
    assert (cookie["httponly"], cookie["samesite"]) == (True, "Lax")
    assert 800 < int(cookie["max-age"]) <= 900
    listed = await console.text(LIST)
    assert (mine in listed, theirs in listed, "other.invalid" in listed) == (True, False, False)
    shown = await console.get(page(mine))
    assert shown.headers["Cache-Control"] == "no-store"
    assert "unsafe" not in shown.headers["Content-Security-Policy"]
    assert "https://shop.invalid/hook" in await shown.text()


async def test_another_owners_subscription_is_reached_by_no_id_and_no_deed(portal: Portal) -> None:
    shop, other = (
        await portal.key("shop", Scope.SUBSCRIPTIONS),
        await portal.key("other", Scope.SUBSCRIPTIONS),
    )
    mine, theirs = await portal.subscribe(shop), await portal.subscribe(other)
    console = await portal.visit(await portal.link(shop))
    token = await console.form_token(f"{page(mine)}/pause")
    rows = (
        "SELECT url, sealed_secrets, paused_at FROM statesvc.subscription WHERE subscription_id"
        " = %s"
    )
    before = await (await portal.api.connection.execute(rows, [theirs])).fetchall()
    for subscription_id in (theirs, theirs.upper(), f"urn:uuid:{theirs}", str(uuid4())):
        assert "there is no subscription" in await html_of(console, page(subscription_id), 404)
        for deed in DEEDS:
            refused = await console.post(
                f"{page(subscription_id)}/{deed}",
                form_token=token,
                step="do",
                why="curious",
                since="2026-01-01T00:00",
                grace_hours="0",
            )
            assert "there is no subscription" in html.unescape(await refused.text()), deed
    assert (await console.get(page("nonsense"))).status == 422
    # what the form sends along never says whose the subscription is
    smuggled = await console.post(
        f"{page(mine)}/pause",
        form_token=token,
        step="do",
        why="mine",
        subscription_id=theirs,
        owner="other",
    )
    assert smuggled.status == 303
    assert await (await portal.api.connection.execute(rows, [theirs])).fetchall() == before
    assert (
        await (await portal.api.connection.execute("SELECT FROM statesvc.test_attempt")).fetchall()
        == []
    )


async def test_it_makes_no_other_calls_of_the_api(portal: Portal) -> None:
    assert {call.partition(" ")[2] for call in CALLS} == {
        PATH,
        ONE,
        *(f"{ONE}/{deed}" for deed in DEEDS),
        f"{ONE}/attempts",
    }
    console = await portal.visit(
        await portal.link(await portal.key("shop", Scope.SUBSCRIPTIONS, Scope.OPS, Scope.READ))
    )
    for path in ("/console", PATH, "/v1/shipments", "/v1/feed"):
        assert (await console.get(path)).status in {303, 401}
    for form in ("delete", "rate"):
        assert (await console.get(f"{page(str(uuid4()))}/{form}")).status == 404


@pytest.mark.parametrize("remembered_seconds", [0.0])
async def test_a_link_that_expired_was_altered_or_whose_key_ended_opens_nothing(
    portal: Portal,
) -> None:
    shop = await portal.key("shop", Scope.SUBSCRIPTIONS)
    mine = await portal.subscribe(shop)
    path = await portal.link(shop, minutes=10)
    console = await portal.visit(path)
    token = await console.form_token(f"{page(mine)}/pause")
    cookie = f"statesvc-portal={path.partition('link=')[2]}"
    claims, _, signature = path.partition("link=")[2].rpartition(".")
    other_claims = (
        (await portal.link(await portal.key("other", Scope.SUBSCRIPTIONS)))
        .partition("link=")[2]
        .rpartition(".")[0]
    )
    ticket = TokenSigner(portal.api.keyring.token_key).sign(
        "stream", {"key_id": "x"}, expires_at=datetime.now(UTC) + timedelta(hours=1)
    )
    for altered in (
        f"{claims}.{signature[:-3]}AAA",
        f"{claims[1:]}.{signature}",
        f"{other_claims}.{signature}",
        claims,
        "",
        ticket,
    ):
        refused = await portal.console().get(f"/portal?link={altered}")
        assert (refused.status, refused.cookies) == (401, {})
        assert "opens nothing" in await refused.text()
    assert (await portal.console().get(LIST)).status == 401
    with freeze_time(datetime.now(UTC) + timedelta(minutes=10, seconds=1), real_asyncio=True):
        assert (await portal.console().get(path)).status == 401
        # a browser drops the cookie by now; one that was stored elsewhere is good no more either
        stored = portal.console()
        assert (await stored.get(page(mine), Cookie=cookie)).status == 401
        posted = stored.client.post(
            f"{page(mine)}/pause", data={"form_token": token}, headers={"Cookie": cookie}
        )
        assert (await posted).status == 401
    assert (await stored.get(page(mine), Cookie=cookie)).status == 200
    await revoke_key(portal.api.connection, key_id=shop.split("_")[1], revoked_by="test")
    assert (await portal.console().get(path)).status == 401
    assert (await stored.get(page(mine), Cookie=cookie)).status == 401


async def test_whose_link_one_may_make_and_how_long_it_is_good(portal: Portal) -> None:
    shop, ops = (
        await portal.key("shop", Scope.SUBSCRIPTIONS),
        await portal.key("staff", Scope.SUBSCRIPTIONS, Scope.OPS),
    )
    mine = await portal.subscribe(shop)
    assert (await portal.call(shop, LINKS, {"owner": "other"}))[1]["required_scope"] == "ops"
    assert (await portal.call(shop, LINKS, {"responses": True}))[1]["required_scope"] == "pii"
    assert (await portal.call(await portal.key("reader", Scope.READ), LINKS, {}))[1][
        "required_scope"
    ] == "subscriptions"
    for wrong in ({"minutes": 0}, {"minutes": 61}, {"owner": "two words"}, {"owner": ""}):
        assert (await portal.call(ops, LINKS, wrong))[0] == 422
    console = await portal.visit(await portal.link(ops, owner="shop"))
    assert mine in await console.text(LIST)
    rows = await (
        await portal.api.connection.execute(
            "SELECT verb, target, canonical FROM statesvc.action WHERE verb = 'portal.link'"
        )
    ).fetchall()
    assert [(verb, target) for verb, target, _ in rows] == [("portal.link", "owner shop")]
    assert "expires_at" in orjson.loads(rows[0][2])["details"]


async def test_a_form_of_another_visit_is_refused(portal: Portal) -> None:
    shop = await portal.key("shop", Scope.SUBSCRIPTIONS)
    mine = await portal.subscribe(shop)
    console, other = (
        await portal.visit(await portal.link(shop)),
        await portal.visit(await portal.link(shop, minutes=20)),
    )
    for token in ("", "0" * 64, await other.form_token(f"{page(mine)}/pause")):
        for deed in DEEDS:
            assert (
                await console.post(
                    f"{page(mine)}/{deed}", form_token=token, since="2026-01-01T00:00"
                )
            ).status == 400
    assert "active" in await console.text(page(mine))


async def test_pause_resume_test_and_secret_do_what_the_api_does_and_the_log_says_it_was_the_portal(
    portal: Portal,
) -> None:
    shop = await portal.key("shop", Scope.SUBSCRIPTIONS)
    mine = await portal.subscribe(shop)
    console = await portal.visit(await portal.link(shop))
    assert "Paused: " in await console.act(f"{page(mine)}/pause", why="a move")
    assert "Resumed: " in await console.act(f"{page(mine)}/resume", why="moved")
    await console.act(f"{page(mine)}/test", why="is it there?", type="shipment.updated")
    assert "updated test" in await console.text(page(mine))
    made = await console.act(f"{page(mine)}/rotate-secret", why="a leak", grace_hours="1")
    assert re.search(r"whsec_[A-Za-z0-9+/]{43}=", made)
    assert "whsec_" not in await console.text(page(mine))
    beyond = await console.preview(f"{page(mine)}/rotate-secret", why="a leak", grace_hours="1000")
    assert "grace_hours" in beyond
    rows = await (
        await portal.api.connection.execute(
            "SELECT canonical FROM statesvc.action WHERE target = %s", [f"subscription {mine}"]
        )
    ).fetchall()
    actors = {
        entry["verb"]: entry["actor"]
        for entry in (orjson.loads(canonical) for (canonical,) in rows)
    }
    key_id = shop.split("_")[1]
    assert actors["subscription.create"] == f"key:{key_id}"
    assert {actors[f"subscription.{verb}"] for verb in ("pause", "resume", "rotate_secret")} == {
        f"key:{key_id}/portal"
    }


async def test_answers_are_shown_by_links_that_may_and_recorded(portal: Portal, scan: Any) -> None:
    shop = await portal.key("shop", Scope.SUBSCRIPTIONS, Scope.PII)
    mine = await portal.subscribe(shop)
    await portal.api.carriers.push(scan("1Z1", Status.PICKED_UP))
    await deliver(portal.api.connection, portal.api.keyring, AttemptOutcome.REFUSED, 503)
    plain, with_answers = (
        await portal.visit(await portal.link(shop)),
        await portal.visit(await portal.link(shop, responses=True)),
    )
    assert "A key with scope pii sees them" in await plain.text(page(mine))
    token = await with_answers.form_token(page(mine))
    shown = await with_answers.post(page(mine), form_token=token, why="it failed")
    assert "answered 503" in await shown.text()
    readings = "SELECT FROM statesvc.action WHERE target = %s AND verb LIKE '%%read%%'"
    assert (
        len(
            await (
                await portal.api.connection.execute(readings, [f"subscription {mine}"])
            ).fetchall()
        )
        == 1
    )


async def test_a_link_is_made_by_the_name_of_the_owners_key(
    portal: Portal, console: ConsoleClient
) -> None:
    connection = portal.api.connection
    scopes = (Scope.SUBSCRIPTIONS,)
    owner, key = await create_key(connection, name="The shop", scopes=scopes, created_by="test")
    await portal.subscribe(key)
    operator = await portal.key("desk", Scope.SUBSCRIPTIONS, Scope.OPS)
    made = (await portal.call(operator, LINKS, {"owner": "The shop"}))[1]
    assert made["owner"] == owner
    assert (await portal.call(operator, LINKS, {"owner": owner}))[1]["owner"] == owner
    visit = await portal.visit(made["path"])
    assert "shop.invalid" in await visit.text(LIST)

    await console.log_in("subscriptions ops", may_change="1")
    done = await console.act(
        "/console/portal-link", owner="The shop", minutes="15", why="they asked"
    )
    assert re.search(r"/portal\?link=[\w.-]+", done)

    await create_key(connection, name="The shop", scopes=scopes, created_by="test")
    status, problem = await portal.call(operator, LINKS, {"owner": "The shop"})
    assert (status, "several keys" in problem["detail"]) == (422, True)
