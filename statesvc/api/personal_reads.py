"""Readings of personal fields: on request, with scope `pii`, recorded before the answer is sent."""

import time
from collections import Counter
from typing import Annotated, Any, Final, Literal, Protocol
from uuid import UUID

from aiohttp import web
from psycopg import AsyncConnection
from pydantic import Field

from statesvc.background.periodic import Periodic
from statesvc.database.pool import Connections
from statesvc.http.call import Call
from statesvc.http.keys.key_store import Scope
from statesvc.http.operation import CALL
from statesvc.http.problem import Code, Problem
from statesvc.log.personal_read_entries import (
    CountedHour,
    PersonalRead,
    begin_personal_read,
    close_hours,
    count_further,
    record_personal_read,
)

_COUNTED_EVERY_SECONDS: Final = 15.0

Include = Annotated[
    Literal["personal"] | None,
    Field(
        description=(
            "`personal`: with personal fields. Takes a key with scope `pii`; the first reading of"
            " an hour is recorded in the log."
        )
    ),
]


def reads_personal(call: Call[Any, Any], include: Literal["personal"] | None) -> bool:
    """Return whether the caller asked for personal fields.

    Raises the problem of a missing scope.
    """
    if include is None:
        return False
    caller = call.caller
    if not caller.has(Scope.PII):
        raise Problem(
            Code.MISSING_SCOPE,
            f"personal fields take a key with scope `pii`, and key {caller.key_id} lacks it: leave"
            " `include=personal` out to read all else",
            members={"required_scope": Scope.PII.value},
        )
    return True


class ReadShipment(Protocol):
    """A shipment that was read. `sealed_key` None: it is erased."""

    @property
    def shipment_id(self) -> UUID: ...

    @property
    def carrier_id(self) -> str: ...

    @property
    def sealed_key(self) -> bytes | None:
        """The key that seals its personal parts."""


class PersonalReads:
    """Personal readings of a process.

    Counts in memory are written now and then: a killed process loses a count, never a first
    reading.
    """

    def __init__(self, pool: Connections) -> None:
        self._pool = pool
        self._further: Counter[CountedHour] = Counter()
        self._closes_at: dict[float, float] = {}
        self._upkeep = Periodic(
            "personal readings",
            self.keep_up,
            every_seconds=_COUNTED_EVERY_SECONDS,
            retry_seconds=5.0,
            jitter=0.2,
        )

    def start(self) -> None:
        """Start to count, and to close hours."""
        self._upkeep.start()

    async def close(self) -> None:
        await self._upkeep.close()
        await self._write_counts()

    async def record(
        self,
        connection: AsyncConnection[Any],
        call: Call[Any, Any],
        *,
        name: str,
        target: str,
        carrier_id: str | None = None,
    ) -> None:
        """Record a reading by the caller, in the log or in a count, before returning.

        A reading with a reason always has its own entry.
        """
        details = {
            "call": name,
            **({} if carrier_id is None else {"carrier_id": carrier_id}),
            **call.why,
        }
        reading = PersonalRead(actor=call.caller.actor, target=target, details=details)
        begun = await begin_personal_read(connection, reading)
        self._closes_at[begun.counted.hour.timestamp()] = time.monotonic() + begun.seconds_left
        if begun.is_first:
            call.is_recorded = True
        # a reason belongs into the log, where a count has no place for it
        elif call.why:
            await record_personal_read(connection, reading)
            call.is_recorded = True
        else:
            # counted, not logged: a screen that reads the same shipment each second would fill the
            # log
            self._further[begun.counted] += 1

    async def record_shipment(
        self,
        connection: AsyncConnection[Any],
        call: Call[Any, Any],
        shipment: ReadShipment,
        *,
        name: str,
    ) -> None:
        """Record the reading of a shipment, like `record`.

        An erased shipment has no personal fields.
        """
        if shipment.sealed_key is not None:
            target = f"shipment {shipment.shipment_id}"
            await self.record(
                connection, call, name=name, target=target, carrier_id=shipment.carrier_id
            )

    async def keep_up(self) -> None:
        """Write counts, and close hours that are over. No statement while there is neither."""
        await self._write_counts()
        now = time.monotonic()
        ended = [hour for hour, closes_at in self._closes_at.items() if closes_at <= now]
        if ended:
            async with self._pool.connection() as connection:
                await close_hours(connection)
            for hour in ended:
                del self._closes_at[hour]

    async def _write_counts(self) -> None:
        if not self._further:
            return
        # taken before the statement, so that readings during it are counted for the next
        counted, self._further = self._further, Counter()
        try:
            async with self._pool.connection() as connection:
                await count_further(connection, counted)
        except BaseException:
            # put back whatever ended the statement, a cancelled task included
            self._further.update(counted)
            raise


def was_recorded(request: web.Request) -> bool:
    """Return whether the call left an action in the log."""
    return CALL in request and request[CALL].is_recorded
