"""`/v1/unmapped-codes...`: codes that no mapping knows, and the events with them."""

from typing import Final

from statesvc.addons.mappings import code_words as words
from statesvc.addons.mappings.code_mapping_models import SampleParameters, UnmappedParameters
from statesvc.addons.mappings.samples import CodeSample, code_samples
from statesvc.addons.mappings.unmapped_codes import UnmappedCode, unmapped_codes
from statesvc.api import kit
from statesvc.api.dead_letter_words import code_path

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
