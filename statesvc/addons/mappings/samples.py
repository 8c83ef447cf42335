"""Events with an unknown code, for operators; with their texts for readers of personal fields."""

from datetime import datetime
from typing import Annotated, Any, Final, NamedTuple
from uuid import UUID

import orjson
from psycopg import AsyncConnection
from pydantic import AwareDatetime, BaseModel, Field

from events.crypto.keyring import Keyring
from events.identity.ids import listed_prefix
from events.text_proposals import proposed
from events.vocabulary import Reason, Status
from statesvc.database.queries import queries
from statesvc.log.json_compression import decompress_json
from statesvc.shipments.personal import Opener

_SQL = queries("statesvc.addons.mappings", "samples")
COUNT_MAX: Final = 10_000
SAMPLES_MAX: Final = 50
_PII: Final = "Only with `include=personal`; null where there is none, or where it was erased."


class ProposedMapping(BaseModel):
    """Meaning that a code may have, by the texts that accompany it."""

    status: Annotated[Status, Field(examples=["delivered"])]
    reason: Reason | None
    why: Annotated[str, Field(examples=["its text holds `delivered`"])]

    @classmethod
    def of(cls, *texts: str | None) -> "ProposedMapping | None":
        """Return the proposal of the first text that has any."""
        found = next((each for text in texts if (each := proposed(text)) is not None), None)
        if found is None or found.meaning.status is None:
            return None
        return cls(status=found.meaning.status, reason=found.meaning.reason, why=found.why)


class CodeSample(BaseModel):
    """An event with the code."""

    carrier_id: str
    tracking_number: str
    shipment_id: UUID
    event_id: str
    message_id: UUID
    recorded_at: AwareDatetime
    occurred_at: AwareDatetime
    raw_type: str | None
    raw_code: Annotated[
        str | None,
        Field(
            description="A text in its place shows as what stands for it: map that, or the text."
        ),
    ]
    raw_reason: str | None
    carrier_code: Annotated[str | None, Field(description="As printed. " + _PII)] = None
    description: Annotated[str | None, Field(description="The text of the event. " + _PII)] = None
    proposed: Annotated[
        ProposedMapping | None,
        Field(
            description="What its text proposes; null: nothing clear. Nothing is read so by itself."
        ),
    ] = None


class SampleRow(NamedTuple):
    """An event as the queries return it."""

    shipment_id: UUID
    event_id: str
    message_id: UUID
    recorded_at: datetime
    canonical: bytes
    sealed_part: bytes | None
    sealed_key: bytes | None

    def sample(self, keyring: Keyring, *, personal: bool = False) -> CodeSample:
        """Open the event. `personal`: with its texts."""
        part = Opener.of_stream(keyring, self.shipment_id, self.sealed_key).part(
            self.event_id, self.sealed_part
        )
        words, printed = part.fields.get("description"), part.printed_code
        document = orjson.loads(decompress_json(self.canonical))
        raw = document["raw"]
        return CodeSample(
            carrier_id=document["carrier_id"],
            tracking_number=document["tracking_number"],
            shipment_id=self.shipment_id,
            event_id=self.event_id,
            message_id=self.message_id,
            recorded_at=self.recorded_at,
            occurred_at=document["occurred_at"],
            raw_type=raw.get("type"),
            raw_code=raw.get("code"),
            raw_reason=raw.get("reason"),
            carrier_code=printed if personal else None,
            description=words if personal else None,
            proposed=ProposedMapping.of(printed, words),
        )


async def code_samples(
    connection: AsyncConnection[Any],
    listed: tuple[str, str | None, str | None],
    keyring: Keyring,
    *,
    personal: bool,
    limit: int,
) -> list[CodeSample]:
    """Return samples of a code as dead letters list it (carrier, type, code), the newest first.

    `personal`: with their texts.
    """
    carrier_id, raw_type, raw_code = listed
    parameters = {
        "carrier_id": carrier_id,
        "raw_type": raw_type,
        "raw_code": raw_code,
        "carrier_code": listed_prefix(raw_type, raw_code),
        "count_max": COUNT_MAX,
        "limit": limit,
    }
    cursor = await connection.execute(_SQL["samples"], parameters)
    return [SampleRow(*row).sample(keyring, personal=personal) for row in await cursor.fetchall()]
