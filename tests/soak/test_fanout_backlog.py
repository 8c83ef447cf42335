"""After a long hold or outage 100,000 notifications wait for one receiver of 50 a second: how a
real notifier begins, what collapses.
"""

import asyncio
import os
import sys
from bisect import bisect_left
from pathlib import Path
from typing import Final

import pytest

from tests.acceptance.processes import Service, until_false
from tests.simulation.backlog import PER_SECOND, RECEIVERS
from tests.soak.fanout import Receiver, changes, listening
from tests.soak.server import SoakServer

pytestmark = pytest.mark.soak

WAITING: Final = int(os.environ.get("STATESVC_SOAK_WAITING", "100000"))
CHANGES_EACH: Final = 4
TOLD_AT_ONCE: Final = 500
STARTED_SECONDS_MAX: Final = 60
SECONDS: Final = 60.0
IN_A_SECOND_MAX: Final = 3 * PER_SECOND
REFUSED_SHARE_MAX: Final = 0.15


@pytest.mark.parametrize("name", RECEIVERS)
async def test_a_backlog_collapses_and_is_sent_no_faster_than_it_is_taken(
    own_server: SoakServer, tmp_path: Path, name: str
) -> None:
    receiver = Receiver(RECEIVERS[name]())
    async with changes(own_server.dsns.service_dsn) as told:
        async with (
            listening([receiver]),
            Service(
                service_dsn=own_server.dsns.service_dsn,
                owner_dsn=own_server.dsns.owner_dsn,
                folder=tmp_path,
                settings={},
            ) as service,
        ):
            await told.subscribe(receiver.url)
            shipments = await told.make_shipments(WAITING // CHANGES_EACH)
            written = 0
            for sequence in range(1, CHANGES_EACH + 1):
                for index in range(0, len(shipments), TOLD_AT_ONCE):
                    written += await told.tell(
                        [(one, sequence) for one in shipments[index : index + TOLD_AT_ONCE]]
                    )
            await service.start("notifier")

            async def is_silent() -> bool:
                return not receiver.started

            async with asyncio.timeout(STARTED_SECONDS_MAX):
                await until_false(is_silent)
            await asyncio.sleep(SECONDS)
        ((waiting,),) = await told.rows("SELECT count(*) FROM statesvc.outbox")
        ((collapsed,),) = await told.rows(
            "SELECT coalesce(sum(skipped), 0)::int FROM statesvc.notification_gap"
        )
    begun = [start.at for start in receiver.started]
    within = [bisect_left(begun, at + 1) - index for index, at in enumerate(begun)]
    refused_share = 1 - receiver.statuses[204] / receiver.statuses.total()
    sys.stdout.write(
        f"\n{name}: {written} waited, {collapsed} of them collapsed; {within[0]} requests in the"
        f" first second, {max(within)} in any, {receiver.peak} in flight; {100 * refused_share:.1f}"
        f" % refused; {len(receiver.taken) / SECONDS:.0f} taken/s, {waiting} left\n"
    )
    assert len(set(receiver.taken)) + collapsed + waiting >= written, (
        "each was taken, stands behind another, or waits"
    )
    assert collapsed >= written * (1 - 1 / CHANGES_EACH) - len(receiver.taken) * CHANGES_EACH, (
        "of each shipment one is left"
    )
    assert max(within) <= IN_A_SECOND_MAX
    assert refused_share <= REFUSED_SHARE_MAX
