"""Replays that fit into one call of the API: one letter, or a page of those that a filter means. Nothing is waited for afterwards."""

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from statesvc.database.wakeups.channels import INBOX, OUTBOX
from statesvc.log.actions import record_action
from statesvc.repair.dead_letters.dead_letter import DeadLetter, Way
from statesvc.repair.dead_letters.obstacle import Obstacle
from statesvc.repair.dead_letters.put_back import Connection, Open, Order, next_letters, put_back
from statesvc.repair.dead_letters.rejected_members import read_members
from statesvc.repair.dead_letters.rereader import MESSAGES_AT_ONCE, Rereader, Result
from statesvc.repair.dead_letters.unknown_code import conclude, find_code, is_known, still_unknown
from statesvc.repair.renormalize.late_code import FIRST, messages_of
from statesvc.repair.renormalize.late_code import clock as database_clock

_READING_SECONDS: Final = 4.0
_MESSAGES_MAX: Final = 2_000
_QUEUED: Final = frozenset({Way.PUT_BACK, Way.SEND_AGAIN})


@dataclass(slots=True)
class Done:
    """What a call did. `channels`: who to wake after it. `reading`: where a code's events are to be read on; None: all were."""

    replayed: int = 0
    result: Result = field(default_factory=Result)
    channels: set[str] = field(default_factory=set)
    reading: UUID | None = None
    left: bool = False
    """Some events of a code were read and are as unknown as before."""

    @property
    def obstacles(self) -> Counter[Obstacle]:
        """What stood in the way of how many letters."""
        return self.result.obstacles


async def replay_one(connection: Connection, order: Order, rereader: Rereader, letter: DeadLetter, *, after: UUID, left: bool) -> Done:
    """Replays `letter`, the only one of `order`. `after`, `left`: of a code, where the call before ended."""
    if letter.kind != "notification" and letter.carrier_id not in rereader.carriers:
        return _refused(Obstacle.UNKNOWN_CARRIER)
    if letter.resolution is not None:
        return _refused(Obstacle(letter.resolution))
    if letter.way is Way.READ_CODE:
        return await _read_code(connection, order, rereader, letter.dead_letter_id, after=after, left=left)
    return await _replay(connection, order, rereader, [(letter.way, _open(letter))])


async def replay_page(
    connection: Connection, order: Order, rereader: Rereader, *, after: int, up_to: int, limit: int
) -> tuple[Done, int | None]:
    """Replays the next letters of a filter, but for those of codes; and where to go on (None: that was the last page)."""
    letters: list[tuple[Way, Open]] = []
    for way in (Way.PUT_BACK, Way.SEND_AGAIN, Way.READ_AGAIN):
        found = await next_letters(connection, order, [way], after=after, up_to=up_to, limit=limit + 1)
        letters += [(way, letter) for letter in found]
    letters.sort(key=lambda each: each[1].dead_letter_id)
    page = letters[:limit]
    done = await _replay(connection, order, rereader, page)
    return done, page[-1][1].dead_letter_id if len(letters) > limit else None


async def _replay(connection: Connection, order: Order, rereader: Rereader, letters: list[tuple[Way, Open]]) -> Done:
    done = Done()
    queued = {letter.dead_letter_id: way for way, letter in letters if way in _QUEUED}
    if queued:
        async with connection.transaction():
            answers = await put_back(connection, order, sorted(queued))
            back = [letter_id for letter_id, obstacle in answers.items() if obstacle is None]
            if back:
                await record(connection, order, "replay", {**order.wanted.stated, "replayed": len(back)})
        done.replayed = len(back)
        done.obstacles.update(obstacle for obstacle in answers.values() if obstacle is not None)
        done.channels |= {INBOX if queued[letter_id] is Way.PUT_BACK else OUTBOX for letter_id in back}
    members = [letter for way, letter in letters if way is Way.READ_AGAIN]
    if members:
        await record(connection, order, "replay_begun", {**order.wanted.stated, "letters": len(members)})
        for start in range(0, len(members), MESSAGES_AT_ONCE):
            part = members[start : start + MESSAGES_AT_ONCE]
            result = await read_members(connection, order, rereader, part)
            done.replayed += len(part) - result.obstacles.total()
            done.result.take(result)
        await _record_end(connection, order, done)
    return done


async def _read_code(connection: Connection, order: Order, rereader: Rereader, dead_letter_id: int, *, after: UUID, left: bool) -> Done:
    done = Done(left=left)
    began = await database_clock(connection)
    deadline = time.monotonic() + _READING_SECONDS
    code = await find_code(connection, dead_letter_id)
    if isinstance(code, Obstacle):
        return _refused(code)
    if not await is_known(connection, rereader, code, actor=order.actor):
        return _refused(Obstacle.NO_MAPPING)
    await record(connection, order, "replay_begun", {"after": str(after)} if after != FIRST else {})
    listed = unread = await messages_of(connection, code, after=after, limit=_MESSAGES_MAX)
    while unread and time.monotonic() < deadline:
        part, unread = unread[:MESSAGES_AT_ONCE], unread[MESSAGES_AT_ONCE:]
        report = await rereader.read(connection, code.carrier_id, part, actor=order.actor)
        done.result.add(report)
        done.left |= still_unknown(report, code, len(part))
        after = part[-1]
    if unread or len(listed) == _MESSAGES_MAX:
        done.reading = after
    elif done.left:
        done.obstacles[Obstacle.STILL_UNKNOWN] += 1
    else:
        for report in await conclude(connection, order, rereader, code, began):
            done.result.add(report)
        done.replayed = 1
    await _record_end(connection, order, done)
    return done


def _refused(obstacle: Obstacle) -> Done:
    done = Done()
    done.obstacles[obstacle] += 1
    return done


def _open(letter: DeadLetter) -> Open:
    return Open(letter.dead_letter_id, letter.kind, letter.carrier_id, letter.message_id)


async def record(connection: Connection, order: Order, verb: str, details: Mapping[str, Any]) -> None:
    """An operator action of this run."""
    stated = {"run": str(order.run_id), "why": order.why, **details}
    async with connection.transaction():
        await record_action(connection, actor=order.actor, verb=verb, target=order.target, details=stated)


async def _record_end(connection: Connection, order: Order, done: Done) -> None:
    if done.result.transitions:
        done.channels.add(OUTBOX)
    result = done.result
    counts = {"replayed": done.replayed, "messages": result.messages, "corrected": result.corrected, "added": result.added}
    await record(connection, order, "replay_ended", {**counts, "refused": done.obstacles.total()})
