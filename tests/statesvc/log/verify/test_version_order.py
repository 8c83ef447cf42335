"""A shipment's versions ascend with the index, and `verify` says so where they do not."""

from typing import Any

from tests.world.attack import attack, verify
from tests.world.story import scan, story

LATE = "SELECT * FROM statesvc.unsealed WHERE batch_id = (SELECT min(batch_id) + 1 FROM statesvc.unsealed)"


async def test_versions_that_were_sealed_in_the_wrong_order_are_named(database: Any) -> None:
    """As a sealer did that had left a batch behind which committed late."""
    async with story(database) as log:
        for place in range(3):
            await log.say(scan("1ZTURNED", place, None))
        await attack(
            database,
            f"CREATE TABLE statesvc.late AS {LATE}",
            "DELETE FROM statesvc.unsealed u USING statesvc.late l WHERE u.batch_id = l.batch_id",
        )
        await log.seal()
        await attack(database, "INSERT INTO statesvc.unsealed SELECT * FROM statesvc.late")
        await log.seal()
        (fault,) = verify(database).faults
        assert (fault.table, fault.field, fault.why) == ("event", "version", "is sealed at index 2, after version 3 at 1")
