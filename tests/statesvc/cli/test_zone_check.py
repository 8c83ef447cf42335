"""Doctor compares the time zones of this command with those that workers read by."""

from psycopg import AsyncConnection

from events.parsing.zones import IANA_RELEASE
from statesvc.cli.doctor.checks import check_zones
from statesvc.health.finding import Urgency


async def test_a_worker_with_another_release_is_a_warning_until_it_is_gone(
    service: AsyncConnection[None], owner: AsyncConnection[None]
) -> None:
    await owner.execute(
        "INSERT INTO statesvc.zone_release (zones, first_at, last_at) VALUES ('2025b', now(),"
        " now())"
    )
    await owner.execute(
        "INSERT INTO statesvc.worker (worker_id, role, host, pid, version, started_at,"
        " last_seen_at, zones) VALUES ('w', 'worker', 'h', 1, '0', statesvc.clock(),"
        " statesvc.clock(), '2025b')"
    )
    (found,) = [finding async for finding in check_zones(service)]
    assert found.urgency is Urgency.HUMAN
    assert f"by release 2025b of the IANA time zones, this command by {IANA_RELEASE}" in found.text
    await owner.execute("DELETE FROM statesvc.worker")
    (found,) = [finding async for finding in check_zones(service)]
    assert found.urgency is Urgency.OK
    assert "earlier: 2025b from" in found.text
