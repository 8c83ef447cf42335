"""Codes on the console: what they came with, a preview, a mapping, its history read again."""

from events.vocabulary import Kind, Status
from tests.statesvc.api.test_dead_letter_replay import open_dead_letters, rows, settle_messages
from tests.world.api import Api, Statement
from tests.world.console import ConsoleClient

UPS = "/console/carriers/ups"
DELIVERED = {
    "raw_type": "Q",
    "raw_code": "77",
    "meaning.kind": "scan",
    "meaning.status": "delivered",
}


async def _push(api: Api, scan: Statement) -> None:
    await api.carriers.push(
        scan("1Z1", Status.IN_TRANSIT),
        scan("1Z1", None, minutes=1, kind=Kind.UNMAPPED, type="Q", code="77"),
    )
    await settle_messages(api)


async def test_a_code_is_found_mapped_and_its_history_read_again(
    console: ConsoleClient, scan: Statement
) -> None:
    await _push(console.api, scan)
    await console.log_in("ops", may_change="on")
    (dead_letter_id,) = await open_dead_letters(console.api)
    dead_letter = f"/console/dead-letters/{dead_letter_id}"
    assert "map it first" in await console.act(f"{dead_letter}/replay", why="try")
    would = await console.preview(f"{UPS}/teach", why="their list", **DELIVERED)
    assert "1 event of 1 shipment" in would
    taught = await console.act(f"{UPS}/teach", why="their list", **DELIVERED)
    assert "revision 1; in effect at the next claim Its history is not read again yet." in taught
    assert "their list" in taught
    done = await console.act(f"{UPS}/mappings/1/renormalize", why="their list")
    assert "1 message read again: 2 events corrected, 1 changes of status" in done
    assert f"dead letter {dead_letter_id} is settled" in done


async def test_texts_are_shown_to_who_says_why_and_a_text_is_mapped_by_what_stands_for_it(
    console: ConsoleClient, scan: Statement
) -> None:
    printed = "Left with <b>Ann</b>"
    await console.api.carriers.push(
        scan("1Z2", None, kind=Kind.UNMAPPED, type=None, code=printed, description=printed)
    )
    await console.log_in("ops pii", may_change="on")
    path = f"{UPS}/code?raw_code=text"
    page = await (await console.get(path)).text()
    assert "Ann" not in page
    assert "teach?raw_code=text-" in page
    token = await console.form_token(path)
    shown = await (
        await console.post(f"{UPS}/code", form_token=token, raw_code="text", why="ticket 9")
    ).text()
    assert "Left with &lt;b&gt;Ann" in shown
    (canonical,) = (
        await rows(
            console.api, "SELECT canonical FROM statesvc.action WHERE verb = 'read_personal'"
        )
    )[0]
    assert b"ticket 9" in bytes(canonical)
    assert "revision 1" in await console.act(
        f"{UPS}/teach", why="as they wrote", raw_code=printed, **{"meaning.kind": "info"}
    )


async def test_a_code_is_mapped_as_its_text_proposes_with_one_form(
    console: ConsoleClient, scan: Statement
) -> None:
    await console.api.carriers.push(
        scan("1Z2", None, kind=Kind.UNMAPPED, type="D", code="ZZ8", description="Zugestellt")
    )
    await console.log_in("ops", may_change="on")
    page = await (await console.get(f"{UPS}/code?raw_type=D&raw_code=ZZ8")).text()
    assert "Map as delivered" in page
    assert "Zugestellt" not in page
    form = await (
        await console.get(f"{UPS}/teach?raw_type=D&raw_code=ZZ8&meaning.status=delivered")
    ).text()
    assert '<option value="delivered" selected' in form
