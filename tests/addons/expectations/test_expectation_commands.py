"""`statesvc expectations`: shown, previewed, stated, inherited again; and what is refused."""

import base64
from dataclasses import replace

import pytest

from events.carriers import CARRIERS
from tests.addons.mappings.test_code_mapping_commands import royalmail
from tests.world.shell import Shell, use
from tests.world.shop import Shop


@pytest.fixture
def royal(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """Make a shop of the real carriers, and commands with its keys."""
    use(shop.database, monkeypatch)
    monkeypatch.setenv("STATESVC_MASTER_KEY", base64.b64encode(bytes(range(32))).decode())
    shop.context = replace(shop.context, carriers=CARRIERS)
    return shop


@pytest.mark.usefixtures("own_processes")
async def test_hours_are_shown_previewed_stated_and_inherited_again(
    royal: Shop, shell: Shell
) -> None:
    await royal.push(royalmail("AB1GB", "EVNMI"), carrier_id="royalmail")
    await royal.work()
    assert ["stalled.in_transit", "120"] in [
        line.split() for line in (await shell("expectations")).splitlines()
    ]
    wanted = ("expectations", "set", "royalmail", "stalled.in_transit=96", "overdue=never")
    printed = await shell(*wanted)
    assert "would be stated: overdue=never, stalled.in_transit=96" in printed
    assert "of 1 unfinished shipment get another deadline" in printed
    assert "nothing was changed" in printed
    assert await royal.value("SELECT count(*) FROM statesvc.expectation_rules") == 0
    assert "--why is missing" in await shell(*wanted, "--yes", exit_code=2)
    assert "Revision 1 is in effect with the next event" in await shell(
        *wanted, "--why", "their contract", "--yes"
    )
    assert "Revision 2" in await shell(
        "expectations", "set", "all", "overdue=12", "--why", "patience", "--yes"
    )
    everyone, one = await shell.json("expectations")
    assert (everyone["stated"], one["stated"]) == (
        {"overdue": 12},
        {"stalled": {"in_transit": 96}, "overdue": None},
    )
    changed = await shell.json(
        "expectations", "set", "royalmail", "overdue=inherit", "--why", "as all", "--yes"
    )
    assert (changed["revision"], changed["rules"]) == (3, {"stalled": {"in_transit": 96}})
    assert "96*" in await shell("expectations")
    of_service = ("expectations", "set", "royalmail", "--service", "Tracked  24", "overdue=1")
    assert "Revision 4" in await shell(*of_service, "--why", "their contract", "--yes")
    assert [each["service"] for each in await shell.json("expectations")] == [
        None,
        None,
        "tracked 24",
    ]
    assert "royalmail: tracked 24" in await shell("expectations")


@pytest.mark.usefixtures("own_processes", "royal")
async def test_what_is_refused(shell: Shell) -> None:
    for wrong in (
        "stalled.delivered=3",
        "overdue",
        "late=3",
        "overdue=-1",
        "overdue=soon",
        "stalled.in_transit=0",
    ):
        assert wrong.partition("=")[0] in await shell(
            "expectations", "set", "royalmail", wrong, exit_code=2
        )
    assert "one carrier's" in await shell(
        "expectations", "set", "all", "--service", "Ground", "overdue=3", exit_code=2
    )
    assert "statesvc carriers" in await shell(
        "expectations", "set", "nobody", "overdue=3", exit_code=2
    )
