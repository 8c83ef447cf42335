"""`POST /v1/shipments/{carrier_id}/{tracking_number}/erase`: a person's data becomes unreadable, for ever."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated
from uuid import UUID

from aiohttp import web
from pydantic import AwareDatetime, Field
from typing_extensions import TypedDict

from events.carriers import CARRIERS
from events.crypto.keyring import Keyring
from statesvc.api.parameters import Name
from statesvc.database.pool import Connections
from statesvc.http.api_keys import caller_of
from statesvc.http.closed_model import ClosedModel
from statesvc.http.operation import Reply, Route, answer, body, parameters, route
from statesvc.http.problem import Code, Problem
from statesvc.log.archive.folder import ArchivePath
from statesvc.log.tombstones import TombstoneError, Tombstones
from statesvc.repair.erasure import DeadLetterSearch, Erasure, UnderLegalHoldError, erase, erase_dead_letters

WHY_LENGTH_MAX = 1000


class ErasureParameters(ClosedModel):
    """Whose data."""

    carrier_id: Name
    tracking_number: Name


class ErasureRequest(ClosedModel):
    """Why. The log stores it: no personal data there."""

    why: Annotated[str, Field(min_length=1, max_length=WHY_LENGTH_MAX)]
    discriminator: Annotated[str | None, Field(description="Only the shipment with this one; left out: all that bear the number.")] = None
    override_hold: Annotated[bool, Field(description="Even under a legal hold.")] = False


class ErasureAnswer(TypedDict):
    """What was erased."""

    erased: list[UUID]
    already_erased: list[UUID]
    complete_at: Annotated[AwareDatetime, Field(description="When the last backup that holds a copy of the key expires.")]
    dead_letters_named: Annotated[int, Field(description="Messages in the dead letters that named the number; they are unreadable now.")]
    dead_letters_left: Annotated[bool, Field(description="There are more to search: `statesvc erase` searches all of them.")]
    survives_restore: Annotated[
        bool,
        Field(description="A tombstone lies outside the database. False: no place is configured, and a restore from a backup undoes it."),
    ]


@dataclass(frozen=True, slots=True)
class ErasureCalls:
    """The handler."""

    pool: Connections
    keyring: Keyring
    folder: ArchivePath | None
    backup_days: int
    tombstones: Tombstones

    async def erase(self, request: web.Request) -> Reply[ErasureAnswer]:
        """Destroys the keys; then searches the first of the carrier's dead letters."""
        asked = parameters(request, ErasureParameters)
        wanted = body(request, ErasureRequest)
        if asked.carrier_id not in CARRIERS:
            raise Problem(Code.UNKNOWN_CARRIER, "no such carrier_id; `statesvc carriers` lists them")
        erasure = Erasure(
            carrier_id=asked.carrier_id,
            tracking_number=asked.tracking_number,
            why=wanted.why,
            actor=caller_of(request).actor,
            discriminator=wanted.discriminator,
            override_hold=wanted.override_hold,
            backup_days=self.backup_days,
        )
        async with self.pool.connection() as connection:
            try:
                erased = await erase(connection, erasure)
            except UnderLegalHoldError as error:
                raise Problem(Code.CONFLICT, str(error)) from error
            search = DeadLetterSearch(
                carrier_id=erasure.carrier_id, number=erasure.number, actor=erasure.actor, keyring=self.keyring, folder=self.folder
            )
            dead_letters = await erase_dead_letters(connection, search)
        try:
            await self.tombstones.publish(erased.tombstones)
        except TombstoneError as error:
            raise Problem(
                Code.TOMBSTONE_UNAVAILABLE, f"erased here, but a restore would undo it: {error}; ask again to complete it"
            ) from error
        return answer(
            {
                "erased": erased.shipments,
                "already_erased": erased.already,
                "complete_at": erased.complete_at,
                "dead_letters_named": dead_letters.named,
                "dead_letters_left": dead_letters.next_after is not None,
                "survives_restore": bool(self.tombstones.places),
            }
        )


def routes(pool: Connections, keyring: Keyring, *, folder: ArchivePath | None, backup_days: int, tombstones: Tombstones) -> Sequence[Route]:
    """The call that erases."""
    return [
        route(
            "POST /v1/shipments/{carrier_id}/{tracking_number}/erase",
            ErasureCalls(pool, keyring, folder, backup_days, tombstones).erase,
            operation_id="erase_shipment",
            summary="Erase a shipment's personal data",
            description="Destroys the key that bodies and personal fields are sealed under. Hashes and proofs go on verifying; later "
            "messages of the number are applied and leave nothing personal, also where it was never seen. It cannot be undone.",
            scope="admin",
            tag="shipments",
            parameters=ErasureParameters,
            request=ErasureRequest,
            response=ErasureAnswer,
            problems=(Code.UNKNOWN_CARRIER, Code.CONFLICT, Code.TOMBSTONE_UNAVAILABLE),
        )
    ]
