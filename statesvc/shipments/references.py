"""References: what a shipper attaches to a tracking number, an order id and metadata; the number's
first scan may come later.

The values are sealed before they reach the database and found by keyed digests. The log says that
they were attached, by whom, and their digest; never what they are. Erasing the number takes them
away, and refuses what would come later.
"""

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Final, NamedTuple

import orjson
from psycopg import AsyncConnection
from pydantic import Field

from events.crypto.keyring import DIGEST_BYTES, Keyring, references_context
from events.entry.canonical_json import canonical_bytes
from events.identity.ids import shipment_id
from events.identity.recipes import number_of
from events.vocabulary import Status
from projections.expectations import Expectation
from statesvc.database.queries import byteas, queries
from statesvc.http.closed_model import ClosedModel
from statesvc.log.actions import SHIPMENT, record_action
from statesvc.log.parcel_log import link_number
from statesvc.shipments.models import ListedShipment

_SQL = queries("statesvc.shipments", "references")

METADATA_MAX: Final = 50
REFERENCE_CHARS_MAX: Final = 500
# To how many numbers a value may be attached and still find them.
NUMBERS_MAX: Final = 1000

ReferenceText = Annotated[
    str, Field(min_length=1, max_length=REFERENCE_CHARS_MAX, pattern=r"^[^\x00-\x1f\x7f]+$")
]
MetadataName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,40}$")]


def _names_first(schema: dict[str, Any]) -> None:
    """Refuse names that break the pattern; pydantic's `patternProperties` alone
    would let them through.
    """
    ((pattern, value),) = schema.pop("patternProperties").items()
    schema |= {"propertyNames": {"pattern": pattern}, "additionalProperties": value}


class ParcelNumber(ClosedModel):
    """A parcel, by its carrier and the number there."""

    carrier_id: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_]{0,63}$")]
    tracking_number: Annotated[
        str,
        Field(
            min_length=1,
            max_length=100,
            pattern=r"^[^\x00]*$",
            description="In any spelling: case, blanks and hyphens do not matter.",
        ),
    ]


class References(ClosedModel):
    """All references of a number.

    Do not put personal data here; it is sealed and erased with the number.
    """

    order_id: Annotated[
        ReferenceText | None,
        Field(description="The shipper's own id of the order; left out or null: none."),
    ] = None
    metadata: Annotated[
        dict[MetadataName, ReferenceText],
        Field(
            max_length=METADATA_MAX,
            description="Further values, under names of the shipper's own; left out: none.",
            json_schema_extra=_names_first,
        ),
    ] = Field(default_factory=dict)

    parcel: Annotated[
        ParcelNumber | None,
        Field(
            description=(
                "Another carrier's parcel that this is, where no message says so: subscriptions"
                " with `parcels` `once` are told of both together from then on. Left out: of none."
            )
        ),
    ] = None

    @property
    def is_empty(self) -> bool:
        return self.order_id is None and not self.metadata and self.parcel is None

    @property
    def values(self) -> set[str]:
        """Values that they are found by."""
        return {value for value in (self.order_id, *self.metadata.values()) if value is not None}


class AttachedTo(NamedTuple):
    """A carrier and a number of it, as it is compared."""

    carrier_id: str
    number: str


@dataclass(frozen=True, slots=True)
class AttachedReferences:
    references: References
    changed_at: datetime


class AwaitedNumber(NamedTuple):
    """A number that is awaited or has references, without any statement yet."""

    carrier_id: str
    number: str
    attached_at: datetime
    never_heard: bool = False
    """Its hours are over."""

    def listed(self) -> ListedShipment:
        """Return it as the shipment that its first scan makes of it, if that has no
        discriminator.
        """
        return {
            "shipment_id": shipment_id(self.carrier_id, self.number, ""),
            "carrier_id": self.carrier_id,
            "tracking_number": self.number,
            "discriminator": "",
            "status": Status.UNKNOWN.value,
            "reason": None,
            "status_since": None,
            "terminal": False,
            "flags": [Expectation.NEVER_HEARD.value] if self.never_heard else [],
            "version": 0,
            "last_event_at": None,
            "recorded_at": self.attached_at,
            "estimated_delivery": None,
            "service": None,
            "delivered_at": None,
            "attempts": 0,
            "erased": False,
        }


class NumberErasedError(RuntimeError):
    """The number was erased: it takes no references any more."""

    def __init__(self) -> None:
        super().__init__("the number was erased: nothing can be attached to it any more")


class ReferenceTooCommonError(LookupError):
    """A value that is attached to very many numbers names none of them."""

    def __init__(self) -> None:
        super().__init__(
            f"more than {NUMBERS_MAX:,} numbers have this reference: ask for one that only your"
            " shipment has"
        )


async def read_references(
    connection: AsyncConnection[Any], keyring: Keyring, number: AttachedTo
) -> AttachedReferences | None:
    row = await (
        await connection.execute(_SQL["attached"], number._asdict(), binary=True)
    ).fetchone()
    return None if row is None else AttachedReferences(_opened(keyring, number, row[0]), row[1])


async def attach_references(
    connection: AsyncConnection[Any],
    keyring: Keyring,
    number: AttachedTo,
    references: References,
    *,
    actor: str,
    why: Mapping[str, str],
) -> AttachedReferences:
    """Put these in place of all that was attached, with an entry in the log unless they are the
    same. Raises NumberErasedError.
    """
    async with connection.transaction():
        before = await read_references(connection, keyring, number)
        if references.parcel != (before and before.references.parcel):
            await link_number(connection, keyring, *number, _parcel(references))
        row = await (
            await connection.execute(_SQL["references_of_number"], number._asdict(), binary=True)
        ).fetchone()
        if (
            row is not None
            and row[0] is not None
            # compared opened: the sealed bytes of the same values differ every time
            and _opened(keyring, number, row[0]) == references
        ):
            return AttachedReferences(references, row[1])
        attached = {
            **number._asdict(),
            "sealed": None
            if references.is_empty
            else keyring.references.seal(_written(references), references_context(*number)),
            "digests": byteas(sorted(_found_by(keyring, value) for value in references.values)),
        }
        changed = await (await connection.execute(_SQL["attach"], attached, binary=True)).fetchone()
        # the row of an erased number stays, without values, and takes none
        if changed is None:
            raise NumberErasedError
        # keyed, with the number: equal references of two numbers do not show as equal in the log
        digest = keyring.carrier_digest(number.carrier_id)(
            references_context(*number) + b"\x1f" + _written(references)
        )
        details = {"digest": digest.hex(), "values": len(references.values), **why}
        target = f"{SHIPMENT}{number.carrier_id} {number.number}"
        await record_action(
            connection, actor=actor, verb="attach_references", target=target, details=details
        )
    return AttachedReferences(references, changed[0])


async def numbers_of_reference(
    connection: AsyncConnection[Any], keyring: Keyring, value: str
) -> list[AttachedTo]:
    """Return the numbers that a value is attached to, as order id or under any name.

    Raises ReferenceTooCommonError.
    """
    wanted = {"digest": _found_by(keyring, value), "limit": NUMBERS_MAX + 1}
    rows = await (await connection.execute(_SQL["numbers_of_reference"], wanted)).fetchall()
    if len(rows) > NUMBERS_MAX:
        raise ReferenceTooCommonError
    return [AttachedTo(*row) for row in rows]


async def order_ids(
    connection: AsyncConnection[Any], keyring: Keyring, numbers: Sequence[AttachedTo]
) -> dict[AttachedTo, str]:
    """Return the order ids that are attached to these numbers, as far as there are any."""
    wanted = {
        "carrier_ids": [each.carrier_id for each in numbers],
        "numbers": [each.number for each in numbers],
    }
    rows = await (
        await connection.execute(_SQL["attached_to_numbers"], wanted, binary=True)
    ).fetchall()
    attached = {
        (number := AttachedTo(carrier_id, text)): _opened(keyring, number, sealed)
        for carrier_id, text, sealed in rows
    }
    return {
        number: references.order_id
        for number, references in attached.items()
        if references.order_id is not None
    }


async def awaited_numbers(
    connection: AsyncConnection[Any], numbers: Sequence[AttachedTo]
) -> list[AwaitedNumber]:
    """Return those numbers without any statement yet."""
    wanted = {
        "carrier_ids": [each.carrier_id for each in numbers],
        "numbers": [each.number for each in numbers],
    }
    return [
        AwaitedNumber(*row)
        for row in await (await connection.execute(_SQL["awaited_numbers"], wanted)).fetchall()
    ]


async def erase_references(
    connection: AsyncConnection[Any], number: AttachedTo, *, others_go_on: bool
) -> None:
    """Remove the references, in the caller's transaction.

    `others_go_on`: only one of the shipments of the number is erased.
    """
    await connection.execute(_SQL["detach" if others_go_on else "erase_number"], number._asdict())


def _parcel(references: References) -> tuple[str, str] | None:
    parcel = references.parcel
    return (
        None
        if parcel is None
        else (parcel.carrier_id, number_of(parcel.carrier_id, parcel.tracking_number))
    )


def _written(references: References) -> bytes:
    return canonical_bytes(references.model_dump(exclude_none=True))


def _opened(keyring: Keyring, number: AttachedTo, sealed: bytes) -> References:
    return References(**orjson.loads(keyring.references.open(sealed, references_context(*number))))


def _found_by(keyring: Keyring, value: str) -> bytes:
    """Return the digest that a value is found by; case and blanks around it do not matter."""
    # as a person types it from a mail: another width, case or blank must find it too
    compared = " ".join(unicodedata.normalize("NFKC", value).casefold().split())
    return keyring.digest(b"reference\x1f" + compared.encode())[:DIGEST_BYTES]
