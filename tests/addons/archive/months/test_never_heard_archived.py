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
from statesvc.addons.evidence.gather import BundleRequest, UnknownShipmentError, gather
from statesvc.addons.evidence.verify_evidence import all_flaws, read_keys
from statesvc.shipments.rebuild.rebuild import Rebuild
from tests.world.attack import places
from tests.world.deliver import deliver
from tests.world.log_archiver import Archiver
from tests.world.log_builder import scan

SUBSCRIBE = """
INSERT INTO statesvc.subscription (subscription_id, created_at, created_by, owner, url, sealed_secrets)
VALUES (gen_random_uuid(), statesvc.clock(), 't', 't', 'https://shop.example/', '{}')
"""
TOLD, WAITING = "1Z0808", "1Z0909"


async def two_silent_months(archiver: Archiver) -> None:
    """Two numbers are never heard of: of one the subscriber was told, of the other it waits to be.

    Then a month of other things.
    """
    await archiver.middle_of_month()
    await archiver.log.parcel("1Z0001", 1)
    await archiver.connection.execute(SUBSCRIBE)
    await archiver.never_heard(TOLD)
    assert len(await deliver(archiver.connection, archiver.log.keyring)) == 1
    await archiver.never_heard(WAITING)
    await archiver.log.seal()
    await archiver.pass_days(31)
    await archiver.log.parcel("1Z0007")
    await archiver.log.seal()
    await archiver.pass_days(31)


async def bundle_of(archiver: Archiver, number: str) -> dict[str, Any]:
    wanted = BundleRequest(carrier_id="ups", number=number, discriminator=None, personal=True)
    return (await gather(archiver.connection, wanted, archiver.log.keyring)).sealed()


async def test_a_log_with_them_is_sound_before_and_after_its_month_is_archived(
    archiver: Archiver,
) -> None:
    await two_silent_months(archiver)
    assert places(archiver.verify()) == []
    entries = archiver.verify().entries
    await archiver.archived()
    assert (await archiver.log.rows("SELECT count(*) FROM statesvc.observation"))[0][0] == 0
    report = archiver.verify()
    # and the entry that says that the month was archived
    assert (places(report), report.entries) == ([], entries + 1)
    assert any(
        WAITING in body for body in await deliver(archiver.connection, archiver.log.keyring)
    ), "what waited is still told"
    await archiver.log.seal()
    assert places(archiver.verify()) == []
    task = Rebuild(
        owner_dsn=archiver.database.owner_dsn,
        actor="t",
        processes=1,
        progress=lambda *_: None,
        archive=archiver.archive,
    )
    assert (await task.compare())[1] == []


async def test_what_a_subscriber_was_told_is_shown_before_and_after_its_month_is_archived(
    archiver: Archiver, api: Any
) -> None:
    await two_silent_months(archiver)
    ((subscription_id,),) = await archiver.log.rows(
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
    await archiver.archived()
    everything = (await api.get(path, scopes="ops subscriptions")).body["items"]
    silent = [
        (one["tracking_number"], one["outcome"])
        for one in everything
        if one["type"] == "shipment.never_heard"
    ]
    assert silent == [(WAITING, "waiting")], "how the other ended has left the database"
    assert await told(TOLD) == before
    assert archiver.verify().faults == []
    again = await api.call(
        "POST", f"{path}/{listed['webhook_id']}/resend", scopes="ops subscriptions"
    )
    assert (again.status, again.body["outcome"]) == (200, "waiting"), again.body
    sent = [
        body for _ in range(2) for body in await deliver(archiver.connection, archiver.log.keyring)
    ]
    assert shown["body"] in sent
    (listed,), shown = await told(TOLD)
    assert ([each["number"] for each in listed["attempts"]], shown["body_state"]) == (
        [1, 2],
        "shown",
    )


async def test_there_is_no_evidence_of_what_nobody_said_and_what_is_said_later_verifies(
    archiver: Archiver,
) -> None:
    await two_silent_months(archiver)
    with pytest.raises(UnknownShipmentError):
        await bundle_of(archiver, TOLD)
    await archiver.archived()
    await archiver.log.append(scan(TOLD, 0, Status.IN_TRANSIT))
    await archiver.log.seal()
    bundle = await bundle_of(archiver, TOLD)
    keys = bundle["log"]["keys"]
    assert check(json.dumps(bundle).encode(), [VerifierKey.parse(key) for key in keys]) == []
    assert list(all_flaws(bundle, read_keys(keys), {})) == []
    assert str(awaited_id("ups", TOLD)) not in json.dumps(bundle["entries"])
