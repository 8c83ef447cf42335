"""Awaited numbers on the console: those that were never heard of, and those that are still in
time.
"""

from tests.addons.expectations.test_awaited import never_heard, put
from tests.world.console import ConsoleClient
from tests.world.database import Database

PAGE = "/console/awaited"


async def test_numbers_that_nothing_was_heard_of_are_listed_and_the_overview_leads_there(
    console: ConsoleClient, database: Database
) -> None:
    await put(console.api)
    await console.log_in("ops read")
    assert "No number matches." in await console.text(PAGE)
    assert "1Z99 ups" in await console.text(f"{PAGE}?never_heard=")
    assert "The carrier has said nothing yet." in await console.text("/console/shipments/ups/1Z99")
    await never_heard(console.api, database)
    await console.log_in("ops read")
    assert "1Z99 ups" in await console.text(PAGE)
    assert "1Z99" not in await console.text(f"{PAGE}?carrier_id=fedex")
    assert "No number matches." in await console.text(f"{PAGE}?never_heard=")
    assert (
        f'href="{PAGE}"'
        in (await (await console.get("/console")).text()).partition('id="settled"')[2]
    )
