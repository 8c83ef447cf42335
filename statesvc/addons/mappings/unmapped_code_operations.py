"""`/v1/unmapped-codes...`: codes that no mapping knows, and the events with them."""

from typing import Annotated, Any, Final, Literal
from uuid import UUID

from psycopg import AsyncConnection
from pydantic import AwareDatetime, BaseModel, Field

from events.clear_part import listed_code
from events.crypto.keyring import Keyring
from events.identity.ids import listed_prefix
from statesvc.addons.mappings import code_words as words
from statesvc.addons.mappings.code_mapping_models import SampleParameters, UnmappedParameters
from statesvc.addons.mappings.mapping_store import COUNT_MAX, codes_by_category, current_mappings
from statesvc.addons.mappings.preview import CodeMeaning
from statesvc.addons.mappings.samples import CodeSample, ProposedMapping, code_samples
from statesvc.api import kit
from statesvc.api.dead_letter_words import code_path
from statesvc.repair.dead_letters.dead_letter import DeadLetterFilter
from statesvc.repair.dead_letters.listing import NEWEST, list_dead_letters, occurrences_of

PAGE = 200
PROPOSED_MAX = 50
SAMPLES_READ = 5


class UnmappedCode(BaseModel):
    """An unmapped code, as dead letters list it."""

    carrier_id: Annotated[str, Field(examples=["ups"])]
    raw_type: Annotated[
        str | None,
        Field(
            description="`text`: any text in its place; null: the carrier prints none.",
            examples=["X"],
        ),
    ]
    raw_code: Annotated[
        str | None,
        Field(
            description="`text`: any text in its place; null: the carrier prints none.",
            examples=["9Z"],
        ),
    ]
    carrier_code: Annotated[
        str | None, Field(description="Both as they stand in the history.", examples=["X/9Z"])
    ]
    read: Annotated[
        Literal["not_at_all", "by_category"],
        Field(description="Whether a category read it meanwhile."),
    ]
    events: int
    shipments: int
    counts_capped: Annotated[bool, Field(description="The counts are lower bounds.")]
    since: AwareDatetime
    dead_letter_id: int | None
    mapped: Annotated[
        CodeMeaning | None,
        Field(description="What a mapping says by now: its history waits to be read again."),
    ]
    message_ids: Annotated[
        list[UUID], Field(description="Some messages with it, the latest first.")
    ]
    proposed: Annotated[
        ProposedMapping | None,
        Field(
            description=(
                "What the texts of its newest events propose, where they agree; a person decides."
            )
        ),
    ] = None


async def unmapped_codes(
    connection: AsyncConnection[Any],
    *,
    carrier_id: str | None = None,
    keyring: Keyring | None = None,
) -> list[UnmappedCode]:
    """Return codes with an open dead letter, the newest first, then those read by category.

    The latter by frequency. With a keyring the first codes have the proposals of their texts.
    """
    found = await _all(connection, carrier_id)
    if keyring is None:
        return found
    proposals = [await _proposed(connection, keyring, each) for each in found[:PROPOSED_MAX]]
    return [
        *(
            each.model_copy(update={"proposed": of})
            for each, of in zip(found, proposals, strict=False)
        ),
        *found[PROPOSED_MAX:],
    ]


async def _proposed(
    connection: AsyncConnection[Any], keyring: Keyring, code: UnmappedCode
) -> ProposedMapping | None:
    samples = await code_samples(
        connection, _listed(code), keyring, personal=False, limit=SAMPLES_READ
    )
    proposals = [each.proposed for each in samples if each.proposed is not None]
    agree = len({(each.status, each.reason) for each in proposals}) == 1
    return proposals[0] if agree else None


async def _all(connection: AsyncConnection[Any], carrier_id: str | None) -> list[UnmappedCode]:
    unknown, rolled_up = (
        await _unknown(connection, carrier_id),
        await _by_category(connection, carrier_id),
    )
    read = {_listed(each) for each in rolled_up}
    asked_for = {_listed(each) for each in unknown}
    merged = [
        each.model_copy(update={"read": "by_category"}) if _listed(each) in read else each
        for each in unknown
    ]
    return [*merged, *(each for each in rolled_up if _listed(each) not in asked_for)]


def _listed(code: UnmappedCode) -> tuple[str, str | None, str | None]:
    return code.carrier_id, listed_code(code.raw_type), listed_code(code.raw_code)


async def _unknown(connection: AsyncConnection[Any], carrier_id: str | None) -> list[UnmappedCode]:
    mapped = {
        row.code[:3]: CodeMeaning.of(row.meaning)
        for row in await current_mappings(connection, carrier_id=carrier_id)
        if row.raw_reason is None and row.raw_text is None
    }
    found: list[UnmappedCode] = []
    before: int | None = NEWEST
    wanted = DeadLetterFilter(kind="code", carrier_id=carrier_id, is_open=True)
    while before is not None:
        dead_letters, before = await list_dead_letters(
            connection, wanted, before=before, limit=PAGE
        )
        counted = await occurrences_of(connection, dead_letters)
        for each in dead_letters:
            occurrences = counted.get(each.dead_letter_id)
            found.append(
                UnmappedCode(
                    carrier_id=each.carrier_id,
                    raw_type=each.raw_type,
                    raw_code=each.raw_code,
                    carrier_code=_carrier_code(each.raw_type, each.raw_code),
                    read="not_at_all",
                    events=occurrences.events if occurrences else 0,
                    shipments=occurrences.shipments if occurrences else 0,
                    counts_capped=occurrences.counts_capped if occurrences else False,
                    since=each.created_at,
                    dead_letter_id=each.dead_letter_id,
                    mapped=mapped.get((each.carrier_id, each.raw_type, each.raw_code)),
                    message_ids=occurrences.message_ids if occurrences else [],
                )
            )
    return found


async def _by_category(
    connection: AsyncConnection[Any], carrier_id: str | None
) -> list[UnmappedCode]:
    found = await codes_by_category(connection)
    capped = sum(each["events"] for each in found) >= COUNT_MAX
    return [
        UnmappedCode(
            **each,
            carrier_code=_carrier_code(each["raw_type"], each["raw_code"]),
            read="by_category",
            counts_capped=capped,
            dead_letter_id=None,
            mapped=None,
        )
        for each in found
        if carrier_id in {None, each["carrier_id"]}
    ]


def _carrier_code(raw_type: str | None, raw_code: str | None) -> str | None:
    return (
        listed_prefix(raw_type, raw_code)
        if raw_code is None or raw_type is None
        else f"{raw_type}/{raw_code}"
    )


_TAG: Final = "codes"


_CARRIERS: Final = "/console/carriers"


_CARRIER: Final = _CARRIERS + "/{carrier_id}"


_UNMAPPED: Final = kit.Table(
    "carrier_id",
    kit.Column(words.listed_code, "Code", link=code_path),
    kit.Column(words.read_by, "Read"),
    "events",
    "shipments",
    "since",
    kit.Column("dead_letter_id", "Dead letter", link="/console/dead-letters/{dead_letter_id}"),
    kit.Column(words.mapped, "Mapped"),
    kit.Column(words.proposed, "Proposed"),
    kit.Column("message_ids", "Examples", wide=True),
    empty="All codes are mapped.",
)


@kit.operation(
    "GET /v1/unmapped-codes",
    scope="ops",
    tag=_TAG,
    problems=(kit.Code.UNKNOWN_CARRIER,),
    view=_UNMAPPED,
    commands=(
        kit.Command(
            name="carriers unmapped",
            summary="list codes without a mapping, and codes read by category only",
            view=(_UNMAPPED, kit.Sentences(words.map_commands)),
        ),
    ),
)
async def list_unmapped_codes(
    context: kit.Context, call: kit.Call[UnmappedParameters, None]
) -> kit.Page[UnmappedCode]:
    """List unknown codes.

    Codes that no mapping knows yet, with their open dead letter, and codes read by their category
    only.
    """
    keyring = await context.keyring_if_any()
    async with context.pool.connection() as connection:
        codes = await unmapped_codes(
            connection, carrier_id=call.parameters.carrier_id, keyring=keyring
        )
    if not codes:
        context.refuse_unknown(call.parameters.carrier_id)
    return kit.Page(codes, None)


@kit.operation(
    "GET /v1/unmapped-codes/samples",
    scope="ops",
    tag=_TAG,
    problems=(kit.Code.UNKNOWN_CARRIER,),
    pages=(
        kit.ConsolePage(
            path=_CARRIER + "/code",
            title="Code of {carrier_id}",
            section=_CARRIERS,
            filter=("raw_type", "raw_code"),
            acts=(_CARRIER + "/teach",),
            personal="Their texts may hold personal data.",
            view=kit.Table(
                kit.Column("occurred_at", "Happened"),
                kit.Column(
                    "tracking_number",
                    "Shipment",
                    link="/console/shipments/{carrier_id}/{tracking_number}",
                ),
                kit.Column(words.code, "Code"),
                kit.Column("carrier_code", "As printed"),
                kit.Column("description", "Text"),
                kit.Column("proposed.status", "Proposed"),
                kit.Column("proposed.why", "Because"),
                kit.Column("recorded_at", "Known"),
                kit.Column(words.teach_words, "Map", link=words.teach_path),
                empty="The log has no event that is still read so.",
            ),
        ),
    ),
)
async def list_unmapped_code_samples(
    context: kit.Context, call: kit.Call[SampleParameters, None]
) -> kit.Page[CodeSample]:
    """Show events with an unknown code.

    The newest first; with `include=personal` the texts that the carrier printed.
    """
    wanted = call.parameters
    context.carrier(wanted.carrier_id)
    personal = kit.reads_personal(call, wanted.include)
    keyring = await context.keyring()
    async with context.pool.connection() as connection:
        code = (wanted.carrier_id, wanted.raw_type, wanted.raw_code)
        samples = await code_samples(
            connection, code, keyring, personal=personal, limit=wanted.limit
        )
        if personal and samples:
            target = f"samples of a code of {wanted.carrier_id}"
            await context.readings.record(
                connection, call, name="code_samples", target=target, carrier_id=wanted.carrier_id
            )
    return kit.Page(samples, None)


OPERATIONS: Final = (list_unmapped_codes, list_unmapped_code_samples)
