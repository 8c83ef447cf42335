"""Rules of what is expected, over the API and by command: shown, previewed, stated, refused."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from events.carriers.carrier import Carrier
from statesvc.addons.expectations import watcher
from statesvc.addons.expectations.watcher import rearm
from tests.addons.expectations.test_observe import flags, say, watch
from tests.addons.mappings.test_code_mappings import royalmail
from tests.world.shell import Shell
from tests.world.worker_harness import ACME, WorkerHarness

PATH = "/v1/expectations"
ACTIONS = (
    "SELECT canonical FROM statesvc.action WHERE verb = 'state_expectations' ORDER BY batch_id"
)


@pytest.fixture
def known_carriers() -> Mapping[str, Carrier]:
    return {ACME.carrier_id: ACME}


async def put(
    api: Any,
    rules: dict[str, Any],
    carrier_id: str = "acme",
    service: str | None = None,
    **more: Any,
) -> Any:
    asked = {
        "json": {"rules": rules, "why": "their contract", **more},
        "params": {"service": service} if service is not None else {},
    }
    return await api.call("PUT", f"{PATH}/{carrier_id}", scopes="ops", **asked)


async def preview(api: Any, rules: dict[str, Any], carrier_id: str = "acme", **query: str) -> Any:
    return await api.call(
        "POST", f"{PATH}/{carrier_id}/preview", scopes="ops", json={"rules": rules}, params=query
    )


async def apply(harness: WorkerHarness) -> int:
    """Apply the rules after every append that read the rules before has ended. Return the pages."""
    await harness.database.clock.advance(61)
    pages = 0
    while await rearm(harness.connection):
        pages += 1
    return pages


async def test_defaults_are_visible_and_a_carrier_states_what_differs(
    api: Any, harness: WorkerHarness
) -> None:
    (everyone,) = (await api.get(PATH, scopes="ops")).body["items"]
    assert (everyone["carrier_id"], everyone["revision"], everyone["stated"]) == ("*", 0, {})
    assert everyone["in_effect"]["stalled"]["in_transit"] == 120
    assert (await put(api, {"overdue": 12}, "all")).body["carrier_id"] == "*"
    stated = (await put(api, {"stalled": {"in_transit": 96}, "pickup_expiring": None})).body
    assert (stated["revision"], stated["stated"]) == (
        2,
        {"stalled": {"in_transit": 96}, "pickup_expiring": None},
    )
    effective = stated["in_effect"]
    assert (effective["stalled"]["in_transit"], effective["stalled"]["picked_up"]) == (96, 72)
    assert (
        effective["overdue"],
        effective["pickup_expiring"],
        stated["inherited"]["pickup_expiring"],
    ) == (12, None, 120)
    assert [each["carrier_id"] for each in (await api.get(PATH, scopes="ops")).body["items"]] == [
        "*",
        "acme",
    ]
    # a PUT is whole: what it leaves out is inherited again
    assert (await put(api, {})).body["in_effect"]["stalled"]["in_transit"] == 120
    actions = [json.loads(canonical) for (canonical,) in await harness.rows(ACTIONS)]
    assert {each["details"]["why"] for each in actions} == {"their contract"}
    assert actions[1]["target"] == "carrier acme"
    assert actions[1]["details"] == {
        "why": "their contract",
        "revision": 2,
        "replaces": 0,
        "stalled.in_transit": 96,
        "pickup_expiring": "never",
    }


async def test_a_preview_says_what_would_be_observed_and_changes_nothing(
    api: Any, harness: WorkerHarness
) -> None:
    for number in range(3):
        await say(harness, f"A{number}", "in_transit")
    await say(harness, "B1", "picked_up")
    await say(harness, "C1", "delivered")
    await watch(harness, hours=50)
    rules = {"stalled": {"in_transit": 48}}
    assert (await preview(api, rules)).body == {
        "replaces": 0,
        "shipments": 4,
        "rearmed": 3,
        "observed_at_once": {"stalled": 3},
        "counts_capped": False,
    }
    assert (await preview(api, rules, "all")).body["rearmed"] == 3
    assert (await preview(api, {"overdue": 48})).body["rearmed"] == 0
    assert (await watch(harness)).due == 0
    assert await harness.value("SELECT count(*) FROM statesvc.expectation_rules") == 0
    await put(api, rules)
    assert (await preview(api, rules)).body["observed_at_once"] == {}
    assert (await preview(api, {}, "all")).body["rearmed"] == 0


async def test_shipments_that_wait_get_their_deadlines_a_page_at_a_time(
    api: Any, harness: WorkerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watcher, "PAGE_ROWS", 2)
    for number in range(5):
        await say(harness, f"A{number}", "in_transit")
    await watch(harness, hours=50)
    assert (await put(api, {"stalled": {"in_transit": 48}})).body["applied"] is False
    assert await rearm(harness.connection) is False, (
        "appends that read the old rules may be under way"
    )
    assert await apply(harness) == 3
    assert (await api.get(f"{PATH}/acme", scopes="ops")).body["applied"] is True
    assert len((await watch(harness)).observations) == 5
    # what was observed stays, whatever the rules are then
    await put(api, {"stalled": {"in_transit": None}})
    await apply(harness)
    assert await flags(harness, "A1") == ["stalled"]
    await say(harness, "A1", "in_transit", code="Y")
    assert (
        await harness.value("SELECT count(*) FROM statesvc.shipment WHERE due_at IS NOT NULL") == 0
    )


async def test_rules_of_all_reach_those_that_state_nothing(
    api: Any, harness: WorkerHarness
) -> None:
    await say(harness, "A1", "in_transit")
    await put(api, {"stalled": {"in_transit": 24}}, "all")
    await apply(harness)
    assert len((await watch(harness, hours=25)).observations) == 1


async def test_a_service_inherits_from_its_carrier_and_wins_over_it(
    api: Any, harness: WorkerHarness
) -> None:
    await say(harness, "A1", "in_transit", service="Acme Next Day")
    await say(harness, "A2", "in_transit", service="Acme Slow")
    await say(harness, "A3", "in_transit")
    await put(api, {"stalled": {"in_transit": 200}, "overdue": 5})
    tight = {"stalled": {"in_transit": 24}}
    assert (await preview(api, tight, service="acme  next DAY")).body["shipments"] == 1
    stated = (await put(api, tight, service="acme  next DAY")).body
    assert (stated["service"], stated["in_effect"]["overdue"]) == ("acme next day", 5)
    listed = (await api.get(PATH, scopes="ops")).body["items"]
    assert [(each["carrier_id"], each["service"]) for each in listed] == [
        ("*", None),
        ("acme", None),
        ("acme", "acme next day"),
    ]
    action = json.loads((await harness.rows(ACTIONS))[-1][0])
    assert (action["target"], action["details"]["stalled.in_transit"]) == (
        "carrier acme, service acme next day",
        24,
    )
    await apply(harness)
    observed = (await watch(harness, hours=30)).observations
    assert [one.shipment.number for one in observed] == ["A1"]
    shown = await api.get(f"{PATH}/acme", scopes="ops", params={"service": "Acme Next Day"})
    assert shown.body == stated | {"applied": True}


async def test_a_service_is_one_carriers_and_named_as_a_service(api: Any) -> None:
    for carrier_id, service in (
        ("all", "Acme Slow"),
        ("acme", ""),
        ("acme", "call +49 170 1234567"),
        ("acme", "x" * 81),
    ):
        assert (await put(api, {}, carrier_id, service)).status == 422, carrier_id


async def test_rules_that_no_parcel_can_meet_are_refused(api: Any) -> None:
    assert (await api.get(f"{PATH}/nobody", scopes="ops")).status == 404
    assert (await api.get(PATH, scopes="read")).status == 403
    for rules in (
        {"stalled": {"delivered": 3}},
        {"late": 3},
        {"overdue": -1},
        {"stalled": {"in_transit": 0}},
        {"overdue": 8761},
    ):
        assert (await put(api, rules)).status == 422, rules
        assert (await preview(api, rules)).status == 422
    assert (await put(api, {}, why=" ")).status == 422
    assert (await put(api, {"overdue": 1}, replaces=0)).status == 200
    refused = await put(api, {"overdue": 2}, replaces=0)
    assert (refused.status, refused.body["latest_revision"]) == (409, 1)
    assert (await put(api, {"overdue": 2}, replaces=1)).status == 200


@pytest.mark.usefixtures("own_processes")
async def test_hours_are_shown_previewed_stated_and_inherited_again(
    royal: WorkerHarness, shell: Shell
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
    assert await royal.value("SELECT count(*) FROM statesvc.expectation_rules") == 0
    assert "--why is missing" in await shell(*wanted, "--yes", exit_code=2)
    assert "Revision 1 is in effect with the next event" in await shell(
        *wanted, "--why", "their contract", "--yes"
    )
    changed = await shell.json(
        "expectations", "set", "royalmail", "overdue=inherit", "--why", "as all", "--yes"
    )
    assert (changed["revision"], changed["rules"]) == (2, {"stalled": {"in_transit": 96}})
    of_service = ("expectations", "set", "royalmail", "--service", "Tracked  24", "overdue=1")
    assert "Revision 3" in await shell(*of_service, "--why", "their contract", "--yes")
    assert [each["service"] for each in await shell.json("expectations")] == [
        None,
        None,
        "tracked 24",
    ]


@pytest.mark.usefixtures("own_processes", "royal")
async def test_the_command_refuses_rules_that_cannot_be_read(shell: Shell) -> None:
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
