"""`POST /v1/shipments/{carrier_id}/{tracking_number}/erase`: erase a person's data for ever."""

from typing import Annotated, Any, Final
from uuid import UUID

from pydantic import AwareDatetime, Field
from typing_extensions import TypedDict

from statesvc.api import kit
from statesvc.api.erasure_words import erased, would_erase
from statesvc.log.archived_files import require_archive
from statesvc.privacy.erasure import (
    DeadLetterSearch,
    Erasure,
    UnderLegalHoldError,
    erase,
    erase_dead_letters,
)

_SHIPMENT: Final = "/console/shipments/{carrier_id}/{tracking_number}"


class ErasureRequest(kit.ClosedModel):
    """Reason for the erasure. The log stores it: no personal data there."""

    why: Annotated[
        kit.RequiredWhy,
        kit.FieldFace(help="recorded in the log: no personal data here"),
    ]
    discriminator: Annotated[
        str | None,
        Field(description="Only the shipment with this one; left out: all that bear the number."),
    ] = None
    override_hold: Annotated[bool, Field(description="Even under a legal hold.")] = False
    cursor: Annotated[
        str | None,
        Field(
            max_length=1024,
            description=(
                "`next_cursor` of the answer before: the search goes on in the next dead letters."
            ),
        ),
    ] = None


class ErasureAnswer(TypedDict):
    """Shipments that were erased."""

    erased: list[UUID]
    already_erased: list[UUID]
    complete_at: Annotated[
        AwareDatetime,
        Field(description="When the last backup that holds a copy of the key expires."),
    ]
    dead_letters_searched: Annotated[
        int, Field(description="Dead letters of the carrier that this call searched.")
    ]
    dead_letters_named: Annotated[
        int,
        Field(
            description=(
                "Messages in the dead letters that named the number; they are unreadable now."
            )
        ),
    ]
    dead_letters_left: Annotated[
        bool, Field(description="There are more to search: `statesvc erase` searches all of them.")
    ]
    survives_restore: Annotated[
        bool,
        Field(
            description=(
                "A tombstone lies outside the database. False: no place is configured, and a"
                " restore from a backup undoes it."
            )
        ),
    ]
    tombstones: Annotated[
        list[str], Field(description="Where tombstones lie outside the database.")
    ]
    next_cursor: Annotated[
        str | None, Field(description="To search the next dead letters; null: all were searched.")
    ]


@kit.operation(
    "POST /v1/shipments/{carrier_id}/{tracking_number}/erase",
    scope="admin",
    tag="shipments",
    problems=(
        kit.Code.UNKNOWN_CARRIER,
        kit.Code.CONFLICT,
        kit.Code.TOMBSTONE_UNAVAILABLE,
        kit.Code.INVALID_CURSOR,
        kit.Code.ADDON_MISSING,
    ),
    parts=kit.CallParts(
        summed=("dead_letters_searched", "dead_letters_named"), first=("erased", "already_erased")
    ),
    view=kit.Sentences(erased),
    commands=(kit.Command(name="erase", arguments=("carrier_id", "tracking_number")),),
    forms=(
        kit.Form(
            path=_SHIPMENT + "/erase",
            title="Erase the personal data of {tracking_number}",
            button="Erase it for ever",
            fields=("discriminator",),
            preview="list_legal_holds",
            would=kit.Sentences(would_erase),
            then=_SHIPMENT,
            section="/console/shipments",
            is_drastic=True,
        ),
    ),
)
async def erase_shipment(
    context: kit.Context, call: kit.Call[kit.NumberParameters, ErasureRequest]
) -> ErasureAnswer:
    """Erase a shipment's personal data.

    Destroys the key that bodies and personal fields are sealed under. Hashes and proofs go on
    verifying; later messages of the number are applied without personal data, also if the
    number was never seen. It cannot be undone.
    """
    wanted = call.body
    erasure = Erasure(
        carrier_id=context.carrier(call.parameters.carrier_id).carrier_id,
        tracking_number=call.parameters.tracking_number,
        why=wanted.why,
        actor=call.caller.actor,
        discriminator=wanted.discriminator,
        override_hold=wanted.override_hold,
        backup_days=context.backup_days,
    )
    bound_to: dict[str, Any] = {"erase": erasure.carrier_id, "number": erasure.number}
    after = kit.after_number(wanted.cursor, bound_to)
    keyring = await context.keyring()
    async with context.pool.connection() as connection:
        await require_archive(connection, "an erasure")
        try:
            done = await erase(connection, erasure)
        except UnderLegalHoldError as error:
            raise kit.Problem(kit.Code.CONFLICT, str(error)) from error
        search = DeadLetterSearch(
            carrier_id=erasure.carrier_id,
            number=erasure.number,
            actor=erasure.actor,
            keyring=keyring,
            folder=context.archive,
        )
        dead_letters = await erase_dead_letters(connection, search, after=after)
    places = await context.publish(done.tombstones)
    return {
        "erased": done.shipments,
        "already_erased": done.already,
        "complete_at": done.complete_at,
        "dead_letters_searched": dead_letters.searched,
        "dead_letters_named": dead_letters.named,
        "dead_letters_left": dead_letters.next_after is not None,
        "survives_restore": bool(places),
        "tombstones": places,
        "next_cursor": (
            None
            if dead_letters.next_after is None
            else kit.encode_cursor([dead_letters.next_after], bound_to)
        ),
    }


OPERATIONS: Final = (erase_shipment,)
