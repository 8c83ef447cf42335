"""A parcel found by its number alone, and everything on record about it, today and as of a time."""

import json
import re
from html import unescape
from typing import Any

import pytest
from yarl import URL

from events.event import Reading
from events.merkle.checkpoint import VerifierKey
from events.vocabulary import Kind, Status
from statesvc.addons.evidence.check_bundle import check
from tests.world.api import Api, Statement
from tests.world.body_archiver import Archiver
from tests.world.console import ConsoleClient, words
from tests.world.deliver import deliver
from tests.world.log_builder import LogBuilder
from tests.world.worker_harness import CARRIER_ID

PAGE = "/console/shipments/ups/1Z7"


async def _seal(api: Api) -> None:
    await LogBuilder(api.connection, api.keyring).seal()


async def _steps(
    console: ConsoleClient, scan: Statement, *statuses: Status, number: str = "1Z7"
) -> None:
    """Push each status in a message of its own, sealed by itself."""
    for minutes, status in enumerate(statuses):
        await console.api.carriers.push(
            scan(number, status, minutes=minutes, description=f"said {minutes}")
        )
        await _seal(console.api)


async def test_a_number_in_any_spelling_leads_to_its_page(
    console: ConsoleClient, scan: Statement
) -> None:
    await _steps(console, scan, Status.IN_TRANSIT)
    await console.log_in("read")
    assert (await console.get("/console")).headers["Location"] == "/console/shipments"
    assert "a part of a number needs 4 characters" in await console.text("/console/shipments?q=345")
    for sought in ("1Z7", " 1z-7 "):
        found = await console.get(f"/console/shipments?q={sought}")
        assert (found.status, found.headers["Location"]) == (303, PAGE)
    shipment = (await console.api.get("/v1/shipments/ups/1Z7")).body
    assert (await console.get(f"/console/shipments?q={shipment['shipment_id']}")).headers[
        "Location"
    ] == PAGE
    attached = {"order_id": "A-1001", "metadata": {"customer": "<i>77</i>"}}
    assert (
        await console.api.call(
            "PUT", "/v1/shipments/ups/1Z7/references", scopes="ingest", json=attached
        )
    ).status == 200
    assert (await console.get("/console/shipments?q=A-1001")).headers["Location"] == PAGE
    assert "Order A-1001 · customer <i>77</i>" in await console.text(PAGE)
    nothing = await console.text("/console/shipments?q=<b>none</b>")
    assert "Nothing is known of “<b>none</b>”." in nothing
    assert "Nothing is known" in await console.text(
        "/console/shipments?q=00000000-0000-0000-0000-000000000000"
    )


async def test_a_number_that_is_a_step_in_a_path_has_a_page_and_a_call(
    console: ConsoleClient, scan: Statement
) -> None:
    await console.api.carriers.push(scan("..", Status.IN_TRANSIT))
    await console.log_in("read")
    found = await console.get("/console/shipments?q=..-")
    assert found.headers["Location"] == "/console/shipments/ups/..-"
    assert "In transit" in await console.text("/console/shipments/ups/..-")
    answer = await console.api.get("/v1/shipments/ups/..-", scopes="read")
    assert answer.body["tracking_number"] == ".."


async def test_the_list_is_filtered_and_paged(console: ConsoleClient, scan: Statement) -> None:
    for number in range(52):
        await console.api.carriers.push(
            scan(f"1Z{number:03}", Status.DELIVERED if number == 3 else Status.IN_TRANSIT)
        )
    await console.log_in("read")
    page = await (await console.get("/console/shipments")).text()
    cursor = re.search(r'name="cursor" value="([^"]+)"', page)
    assert cursor is not None
    rest = await console.text(f"/console/shipments?cursor={unescape(cursor[1])}")
    assert "1Z000" in rest
    assert "1Z002" not in rest
    delivered = await console.text("/console/shipments?status=delivered")
    assert "1Z003" in delivered
    assert "1Z004" not in delivered
    assert (await console.get("/console/shipments?status=nonsense")).status == 422


async def test_the_timeline_has_both_clocks_places_and_what_moved_the_status(
    console: ConsoleClient, scan: Statement
) -> None:
    await _steps(console, scan, Status.PICKED_UP, Status.DELIVERED)
    await console.log_in("audit read")
    text = await console.text(PAGE)
    assert "2026-03-01 08:01:00 UTC" in text
    assert "Springfield, IL, 627, US" in text
    assert text.index("Delivered · Springfield") < text.index("Picked up · Springfield"), (
        "the newest first"
    )
    assert "picked up delivered statement 2" in await console.text(f"{PAGE}?tab=record")
    assert "said 1" not in text
    await console.log_in("read")
    assert "What we concluded" not in await console.text(f"{PAGE}?tab=record")


async def test_personal_fields_come_with_a_reason_that_is_on_record(
    console: ConsoleClient, scan: Statement
) -> None:
    await console.api.carriers.push(
        scan("1Z7", Status.DELIVERED, signed_by="J. <b>Doe</b>", description="Left with neighbour")
    )
    await console.log_in("read audit pii")
    masked = await console.text(PAGE)
    assert "signed by masked: say why to see" in masked
    assert "Doe" not in masked
    token = await console.form_token(PAGE)
    refused = await console.post(PAGE, form_token=token, why=" ")
    assert refused.status == 422
    assert (await console.post(PAGE, form_token="0" * 64, why="a dispute")).status == 400
    shown = await (await console.post(PAGE, form_token=token, why="dispute 12")).text()
    assert "J. &lt;b&gt;Doe&lt;/b&gt;" in shown
    assert "Left with neighbour" in shown
    rows = await (
        await console.api.connection.execute(
            "SELECT convert_from(canonical, 'UTF8')::jsonb -> 'details' ->> 'why' FROM"
            " statesvc.action WHERE verb = 'read_personal'"
        )
    ).fetchall()
    assert ("dispute 12",) in rows
    await console.log_in("read audit")
    refused = await console.post(PAGE, form_token=await console.form_token(PAGE), why="curious")
    assert refused.status == 403


async def test_the_page_answers_first_and_names_what_contradicts_and_who_was_notified(
    console: ConsoleClient, scan: Statement
) -> None:
    await console.api.call(
        "POST", "/v1/subscriptions", scopes="subscriptions", json={"url": "https://shop.invalid/x"}
    )
    await _steps(console, scan, Status.PICKED_UP, Status.DELIVERED)
    await deliver(console.api.connection, console.api.keyring)
    for minutes in (481, 300):
        await console.api.carriers.push(scan("1Z7", Status.IN_TRANSIT, minutes=minutes))
    await console.log_in("read audit")
    text = await console.text(PAGE)
    for sentence in (
        "Delivered 1 March 2026 at 08:01 UTC (1 Mar 2026, 02:01 in Springfield, computed from",
        r"The carrier said so \d+ d \d+ h later\.",
        "8 h after “delivered” the carrier scanned the parcel “In transit” in Springfield, IL,",
        "came late, after statement 3",
        "event 2 sent to 1 subscriber shop.invalid is still to be notified",
        r"event 1 sent to 1 subscriber shop.invalid was notified .* \(204 in 10 ms\)",
    ):
        assert re.search(sentence if "\\" in sentence else re.escape(sentence), text), sentence


async def test_what_was_known_at_a_time(console: ConsoleClient, scan: Statement) -> None:
    await _steps(console, scan, Status.PICKED_UP, Status.IN_TRANSIT, Status.DELIVERED)
    await console.log_in("read audit")
    page = await (await console.get(PAGE)).text()
    assert 'min="1" max="3" value="3"' in page
    second = await console.get(f"{PAGE}?seen=2")
    assert second.status == 303
    then = await console.text(second.headers["Location"])
    assert "What we knew on" in then
    assert "In transit" in then
    assert "Delivered" not in then.partition("Timeline")[0]
    assert "Nothing was known of it then." in await console.text(f"{PAGE}?as_of=2020-01-01T00:00")
    for odd in ("seen=0", "seen=4", "seen=x", "as_of=yesterday"):
        assert (await console.get(f"{PAGE}?{odd}")).status == 422


async def test_corrections_and_contradictions_are_explained(
    console: ConsoleClient, scan: Statement
) -> None:
    first: Reading = scan("1Z7", Status.DELIVERED, native_id="n1", code="D1")
    await console.api.carriers.push(scan("1Z7", Status.IN_TRANSIT, minutes=-60), first)
    await console.api.carriers.push(scan("1Z7", Status.DELIVERED, native_id="n1", code="D2"))
    event_id = (await console.api.get("/v1/shipments/ups/1Z7/history")).body["items"][1]["event_id"]
    taken_back: Any = scan("1Z7", None, minutes=5, kind=Kind.CORRECTION, corrects=event_id)
    await console.api.carriers.push(taken_back)
    await console.log_in("read audit")
    text = await console.text(PAGE)
    assert "The carrier took back “Delivered” of 2026-03-01 08:00:00 UTC." in text
    assert "Taken back later: it no longer counts." in text
    assert "1 statement has other facts" in text
    assert "First the code was T/D1, then T/D2." in await console.text(f"{PAGE}?tab=record")


@pytest.mark.parametrize("number", ["a b/c", "ü?&#", "'\"><img>"])
async def test_an_odd_number_keeps_its_own_page(
    console: ConsoleClient, scan: Statement, number: str
) -> None:
    await console.api.carriers.push(scan(number, Status.IN_TRANSIT))
    await console.log_in("read audit")
    listed = await (await console.get("/console/shipments")).text()
    link = re.search(r'<td data-title="Number" class=""><a href="([^"]+)"', listed)
    assert link is not None
    shown = await console.client.get(URL(unescape(link[1]), encoded=True))
    assert shown.status == 200
    assert "In transit" in words(await shown.text())


async def test_an_event_has_its_proof_and_leads_to_its_masked_message(
    console: ConsoleClient, archiver: Archiver
) -> None:
    await archiver.harness.ingest({"number": "A1", "status": "in_transit", "city": "<i>Straße</i>"})
    await _seal(console.api)
    page = f"/console/shipments/{CARRIER_ID}/A1/events/1"
    await console.log_in("read audit pii")
    event = await console.text(page)
    assert "it is in the log, as it was when the root was signed" in event
    link = re.search(r'href="(/console/messages/[^"]+)"', await (await console.get(page)).text())
    assert link is not None
    assert "Structure alone: every value is masked." in await console.text(link[1])


@pytest.mark.usefixtures("own_processes")
async def test_a_form_of_evidence_opens_what_a_network_asks_for_and_remembers_the_merchant(
    console: ConsoleClient, scan: Statement
) -> None:
    await _steps(console, scan, Status.DELIVERED)
    await console.log_in("read audit")
    page = f"{PAGE}/evidence"
    assert "<details><summary>Where the order was to go" in await (await console.get(page)).text()
    asked = await (await console.get(f"{page}?for=visa")).text()
    assert "<details open><summary>Where the order was to go" in asked
    assert "<details><summary>The customer" in asked
    assert 'value="13.1"' in asked
    assert asked.count("Visa 13.1 asks for it") == 10
    token = await console.form_token(page)
    stated = {"merchant.name": "Example & Sons", "merchant.descriptor": "EXAMPLE*SPORTS"}
    made = await console.post(
        page, form_token=token, case="dp_1", form=".json", preset="visa", **stated
    )
    assert made.status == 200
    again = await (await console.get(f"{page}?for=visa")).text()
    assert 'value="Example &amp; Sons"' in again
    assert again.count("Visa 13.1 asks for it") == 8


async def test_without_the_add_on_evidence_no_page_leads_to_it(
    console: ConsoleClient, scan: Statement, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _steps(console, scan, Status.DELIVERED)
    await console.log_in("read audit")
    assert "Evidence for a case" in await console.text(PAGE)
    monkeypatch.setenv("STATESVC_ADDONS", "console")
    assert "Evidence for a case" not in await console.text(PAGE)


@pytest.mark.usefixtures("own_processes")
async def test_evidence_is_a_file_for_a_case(console: ConsoleClient, scan: Statement) -> None:
    await _steps(console, scan, Status.PICKED_UP, Status.DELIVERED)
    await console.log_in("read audit pii")
    page = f"{PAGE}/evidence"
    token = await console.form_token(page)
    fields = {
        "case": "dp_7",
        "ship_to.city": "springfield",
        "ship_to.country": "US",
        "form": ".json",
    }
    made = await console.post(page, form_token=token, **fields)
    assert made.status == 200, words(await made.text())
    assert made.headers["Content-Disposition"] == 'attachment; filename="evidence-ups-1Z7.json"'
    document = await made.read()
    bundle = json.loads(document)
    assert check(document, [VerifierKey.parse(key) for key in bundle["log"]["keys"]]) == []
    assert bundle["stated"]["statement"] == {
        "case": "dp_7",
        "ship_to": {"city": "springfield", "country": "US"},
    }
    fields["ship_to.country"] = "Germany"
    wrong = await (await console.post(page, form_token=token, **fields)).text()
    assert "ship_to/country: should be the two letters of ISO 3166-1" in words(wrong)
    assert "springfield" in wrong, "what was filled in stays"


async def test_only_an_admin_is_shown_how_to_erase_and_only_while_changes_are_allowed(
    console: ConsoleClient, scan: Statement
) -> None:
    await _steps(console, scan, Status.DELIVERED)
    await console.log_in("read audit ops", may_change="on")
    assert "/erase" not in await (await console.get(PAGE)).text()
    assert (await console.get(f"{PAGE}/erase")).status == 403
    await console.log_in("admin")
    assert "/erase" not in await (await console.get(PAGE)).text()
    refused = await console.post(
        f"{PAGE}/erase", form_token=await console.form_token(PAGE), why="no", step="do"
    )
    assert refused.status == 403
    assert (await console.api.get("/v1/shipments/ups/1Z7")).body["erased"] is False


async def test_of_a_number_that_was_used_twice_only_the_one_on_the_page_is_erased(
    console: ConsoleClient, scan: Statement
) -> None:
    for discriminator in ("2460001~1", "2460001~2"):
        await console.api.carriers.push(
            scan("777", Status.DELIVERED, discriminator=discriminator), carrier_id="fedex"
        )
    await console.log_in("admin", may_change="on")
    page = "/console/shipments/fedex/777"
    assert "Erased: 1 shipment (" in await console.act(
        f"{page}/erase?discriminator=2460001~1", why="they asked", discriminator="2460001~1"
    )
    erased = [
        (await console.api.get("/v1/shipments/fedex/777", params={"discriminator": each})).body[
            "erased"
        ]
        for each in ("2460001~1", "2460001~2")
    ]
    assert erased == [True, False]
