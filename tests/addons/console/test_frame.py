"""Login, sessions, forms: what every page of the console has."""

import re

import pytest
from yarl import URL

from statesvc.subscriptions.key_revocation import revoke_key
from tests.world.console import LOGIN, ConsoleClient
from tests.world.database import Database


async def test_a_page_asks_for_a_key_and_comes_after_it(console: ConsoleClient) -> None:
    asked = await console.get("/console?x=1")
    assert (asked.status, asked.headers["Location"]) == (303, f"{LOGIN}?to=/console?x%3D1")
    entered = await console.log_in("ops", to="/console")
    assert (entered.status, entered.headers["Location"]) == (303, "/console")
    cookie = entered.cookies["statesvc"]
    assert cookie["httponly"]
    assert cookie["samesite"] == "Strict"
    page = await console.get("/console")
    text = await page.text()
    assert page.status == 200
    assert "no worker was heard of" in text
    assert "Read-only" in text
    assert page.headers["Cache-Control"] == "no-store"
    assert "unsafe" not in page.headers["Content-Security-Policy"]


async def test_neither_token_nor_key_is_stored(console: ConsoleClient) -> None:
    entered = await console.log_in("ops")
    rows = await (
        await console.api.connection.execute("SELECT s::text FROM statesvc.console_session s")
    ).fetchall()
    assert len(rows) == 1
    assert entered.cookies["statesvc"].value not in rows[0][0]
    assert (await console.api.key("ops")).split("_", 2)[2] not in rows[0][0]


async def test_a_login_takes_a_new_token_and_refuses_a_wrong_key(console: ConsoleClient) -> None:
    token = await console.form_token()
    before = console.client.session.cookie_jar.filter_cookies(
        URL(str(console.client.make_url("/")))
    )["statesvc"].value
    refused = await console.post(LOGIN, form_token=token, key="ss_000000000000_" + "x" * 43)
    assert "not valid" in await refused.text()
    entered = await console.log_in("ops")
    assert entered.cookies["statesvc"].value != before


async def test_a_session_ends_after_half_a_day_where_its_key_is_another_one_and_with_its_key(
    console: ConsoleClient, database: Database
) -> None:
    await console.log_in("ops")
    await database.clock.advance(12 * 3600 - 60)
    assert (await console.get("/console")).status == 200
    await database.clock.advance(61)
    assert (await console.get("/console")).status == 303
    await console.log_in("ops")
    await console.api.connection.execute(
        "UPDATE statesvc.console_session SET key_hash = sha256('other')"
    )
    assert (await console.get("/console")).status == 303
    await console.log_in("ops")
    assert (await console.get("/console")).status == 200
    key_id = (await console.api.key("ops")).split("_")[1]
    async with console.api.connection.transaction():
        await revoke_key(console.api.connection, key_id=key_id, revoked_by="test")
    assert (await console.get("/console")).status == 303


async def test_a_form_of_another_session_is_refused(console: ConsoleClient) -> None:
    await console.log_in("ops", may_change="on")
    for token in ("", "0" * 64):
        refused = await console.post("/console/changes", form_token=token, may_change="0")
        assert refused.status == 400
    assert "Changes allowed" in await (await console.get("/console")).text()
    changed = await console.post(
        "/console/changes",
        form_token=await console.form_token("/console"),
        may_change="0",
        to="/console",
    )
    assert changed.status == 303
    assert "Read-only" in await (await console.get("/console")).text()


async def test_a_login_form_without_its_cookie_is_refused(console: ConsoleClient) -> None:
    token = await console.form_token()
    console.client.session.cookie_jar.clear()
    refused = await console.post(LOGIN, form_token=token, key=await console.api.key("ops"))
    assert "sent no cookie" in await refused.text()
    assert (
        await (
            await console.api.connection.execute("SELECT FROM statesvc.console_session")
        ).fetchall()
        == []
    )


async def test_over_a_name_of_the_network_the_cookie_takes_https(console: ConsoleClient) -> None:
    page = await console.get(LOGIN, Host="console.example.com")
    cookie = page.cookies["__Host-statesvc"]
    assert cookie["secure"]
    assert cookie["path"] == "/"


@pytest.mark.parametrize(
    "to",
    ["https://evil.example/", "//evil.example", "/consoles", "/console\\@evil.example\r\nX: y"],
)
async def test_a_login_leads_nowhere_else(console: ConsoleClient, to: str) -> None:
    entered = await console.log_in("ops", to=to)
    assert entered.headers["Location"] == "/console"


async def test_a_page_that_updates_itself_is_led_to_the_login(console: ConsoleClient) -> None:
    asked = await console.get("/console", **{"HX-Request": "true"})
    assert (asked.status, asked.headers["HX-Redirect"]) == (401, LOGIN)


async def test_logging_out_ends_the_session(console: ConsoleClient) -> None:
    await console.log_in("ops")
    left = await console.post("/console/logout", form_token=await console.form_token("/console"))
    assert left.status == 303
    assert (
        await (
            await console.api.connection.execute("SELECT FROM statesvc.console_session")
        ).fetchall()
        == []
    )


async def test_a_key_has_twenty_sessions_at_most(
    console: ConsoleClient, database: Database
) -> None:
    for _ in range(22):
        await console.log_in("ops")
    await database.clock.advance(0)
    rows = await (
        await console.api.connection.execute("SELECT count(*) FROM statesvc.console_session")
    ).fetchone()
    assert rows == (20,)
    assert (await console.get("/console")).status == 200


async def test_files_are_stored_for_ever_under_their_digest(console: ConsoleClient) -> None:
    text = await (await console.get(LOGIN)).text()
    style = re.search(r'href="(/console/static/[0-9a-f]{12}/console\.css)"', text)
    assert style is not None
    file = await console.get(style[1])
    assert (file.status, file.content_type) == (200, "text/css")
    assert "immutable" in file.headers["Cache-Control"]
    assert (await console.get("/console/static/000000000000/console.css")).status == 404


async def test_a_path_that_nothing_has_is_a_page_too(console: ConsoleClient) -> None:
    assert (await console.get("/console/nowhere/at/all")).status == 303
    await console.log_in("ops")
    missing = await console.get("/console/nowhere/at/all")
    assert (missing.status, missing.content_type) == (404, "text/html")
    assert "There is no such page" in await missing.text()
    refused = await console.get("/console/shipments/ups/1Z1")
    assert refused.status == 403
    assert 'aria-label="Screens"' in await refused.text(), "the menu leads on"


async def test_what_went_wrong_is_a_page(console: ConsoleClient) -> None:
    await console.log_in("ops")
    refused = await console.client.post(
        "/console/changes", json={"may_change": "1"}, allow_redirects=False
    )
    assert (refused.status, refused.content_type) == (415, "text/html")
