"""Observations of numbers of which nothing was ever heard have version 0 and no shipment: sealed,
verified, archived as all entries are.
"""

import json
from typing import Any

import pytest

from events.identity.ids import awaited_id
from events.merkle.checkpoint import VerifierKey
from events.vocabulary import Status
from statesvc.addons.evidence.check_bundle import check
from statesvc.addons.evidence.gather import UnknownShipmentError, Wanted, gather
from statesvc.addons.evidence.verify_evidence import all_flaws, read_keys
from statesvc.shipments.rebuild.rebuild import Rebuild
from tests.world.attack import attack, places
from tests.world.deliver import deliver
from tests.world.log_archivist import Archivist
from tests.world.log_builder import scan

SUBSCRIBE = """
INSERT INTO statesvc.subscription (subscription_id, created_at, created_by, owner, url, sealed_secrets)
VALUES (gen_random_uuid(), statesvc.clock(), 't', 't', 'https://shop.example/', '{}')
"""
TOLD, WAITING = "1Z0808", "1Z0909"


async def two_silent_months(archivist: Archivist) -> None:
    """Two numbers are never heard of: of one the subscriber was told, of the other it waits to be.

    Then a month of other things.
    """
    await archivist.log.parcel("1Z0001", 1)
    await archivist.connection.execute(SUBSCRIBE)
    await archivist.never_heard(TOLD)
    assert len(await deliver(archivist.connection, archivist.log.keyring)) == 1
    await archivist.never_heard(WAITING)
    await archivist.log.seal()
    await archivist.pass_days(31)
    await archivist.log.parcel("1Z0007")
    await archivist.log.seal()
    await archivist.pass_days(31)


async def bundle_of(archivist: Archivist, number: str) -> dict[str, Any]:
    wanted = Wanted(
        carrier_id="ups",
        number=number,
        discriminator=None,
        keyring=archivist.log.keyring,
        personal=True,
        archive=None,
    )
    return (await gather(archivist.connection, wanted)).sealed()


async def test_a_log_with_them_is_sound_before_and_after_its_month_is_archived(
    archivist: Archivist,
) -> None:
    await two_silent_months(archivist)
    assert places(archivist.verify()) == []
    entries = archivist.verify().entries
    await archivist.archived()
    assert (await archivist.log.rows("SELECT count(*) FROM statesvc.observation"))[0][0] == 0
    report = archivist.verify()
    # and the entry that says that the month was archived
    assert (places(report), report.entries) == ([], entries + 1)
    assert any(
        WAITING in body for body in await deliver(archivist.connection, archivist.log.keyring)
    ), "what waited is still told"
    await archivist.log.seal()
    assert places(archivist.verify()) == []
    task = Rebuild(
        owner_dsn=archivist.database.owner_dsn,
        actor="t",
        processes=1,
        progress=lambda *_: None,
        archive=archivist.archive,
    )
    assert (await task.compare())[1] == []


async def test_what_a_subscriber_was_told_is_shown_before_and_after_its_month_is_archived(
    archivist: Archivist, api: Any
) -> None:
    await two_silent_months(archivist)
    ((subscription_id,),) = await archivist.log.rows(
        "SELECT subscription_id FROM statesvc.subscription"
    )
    path = f"/v1/subscriptions/{subscription_id}/notifications"

    async def told(number: str) -> tuple[list[Any], Any]:
        """Return what a look by number lists, and the page of the first one."""
        listed = (
            await api.get(path, scopes="ops subscriptions", params={"tracking_number": number})
        ).body["items"]
        return listed, (
            await api.get(f"{path}/{listed[0]['webhook_id']}", scopes="ops subscriptions")
        ).body

    before = await told(TOLD)
    (listed,), shown = before
    assert (listed["type"], listed["outcome"], len(listed["attempts"])) == (
        "shipment.never_heard",
        "delivered",
        1,
    )
    assert (shown["body_state"], json.loads(shown["body"])["data"]["tracking_number"]) == (
        "shown",
        TOLD,
    )
    await archivist.archived()
    everything = (await api.get(path, scopes="ops subscriptions")).body["items"]
    silent = [
        (one["tracking_number"], one["outcome"])
        for one in everything
        if one["type"] == "shipment.never_heard"
    ]
    assert silent == [(WAITING, "waiting")], "how the other ended has left the database"
    assert await told(TOLD) == before
    assert archivist.verify().faults == []
    again = await api.call(
        "POST", f"{path}/{listed['webhook_id']}/resend", scopes="ops subscriptions"
    )
    assert (again.status, again.body["outcome"]) == (200, "waiting"), again.body
    sent = [
        body
        for _ in range(2)
        for body in await deliver(archivist.connection, archivist.log.keyring)
    ]
    assert shown["body"] in sent
    (listed,), shown = await told(TOLD)
    assert ([each["number"] for each in listed["attempts"]], shown["body_state"]) == (
        [1, 2],
        "shown",
    )


async def test_one_that_was_changed_is_found(archivist: Archivist) -> None:
    await archivist.never_heard(TOLD)
    await archivist.log.seal()
    await attack(
        archivist.database, "UPDATE statesvc.observation SET since = since - interval '1 day'"
    )
    assert {fault.field for fault in archivist.verify().faults} == {"since"}


async def test_there_is_no_evidence_of_what_nobody_said_and_what_is_said_later_verifies(
    archivist: Archivist,
) -> None:
    await two_silent_months(archivist)
    with pytest.raises(UnknownShipmentError):
        await bundle_of(archivist, TOLD)
    await archivist.archived()
    await archivist.log.say(scan(TOLD, 0, Status.IN_TRANSIT))
    await archivist.log.seal()
    bundle = await bundle_of(archivist, TOLD)
    keys = bundle["log"]["keys"]
    assert check(json.dumps(bundle).encode(), [VerifierKey.parse(key) for key in keys]) == []
    assert list(all_flaws(bundle, read_keys(keys), {})) == []
    assert str(awaited_id("ups", TOLD)) not in json.dumps(bundle["entries"])
