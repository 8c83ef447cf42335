"""Letters of messages that were applied but for some members: the message is read again, and what it lacks is appended."""

from collections import defaultdict
from collections.abc import Sequence

from statesvc.repair.dead_letters.obstacle import Obstacle
from statesvc.repair.dead_letters.put_back import Connection, Open, Order, resolve
from statesvc.repair.dead_letters.rereader import Rereader, Result


async def read_members(connection: Connection, order: Order, rereader: Rereader, letters: Sequence[Open]) -> Result:
    """Resolves the letters of messages that are read whole now. At most `MESSAGES_AT_ONCE` letters."""
    by_carrier: dict[str, list[Open]] = defaultdict(list)
    for letter in letters:
        by_carrier[letter.carrier_id].append(letter)
    result = Result()
    mended: list[int] = []
    for carrier_id, its in by_carrier.items():
        report = await rereader.read(
            connection, carrier_id, [letter.message_id for letter in its if letter.message_id is not None], actor=order.actor
        )
        result.add(report)
        for letter in its:
            if letter.message_id is None or letter.message_id in report.unopened:
                result.obstacles[Obstacle.UNREADABLE] += 1
            elif letter.message_id in report.rejected:
                result.obstacles[Obstacle.STILL_REJECTED] += 1
            else:
                mended.append(letter.dead_letter_id)
    if mended:
        await resolve(connection, order, mended)
    return result
