"""`/v1/unmapped-codes`, `/v1/carriers/{carrier_id}/mappings...`: map codes without a deploy.

A preview changes no data; teaching is an operator action; reading the history again is cut into
calls, like a replay.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from psycopg import AsyncConnection

from events.carriers.carrier import Carrier
from statesvc.addons.mappings import code_words as words
from statesvc.addons.mappings.code_events import as_events_have_it, has_events
from statesvc.addons.mappings.code_mapping_models import (
    MappedCodesParameters,
    MappingParameters,
    MappingsParameters,
    PreviewRequest,
    TeachRequest,
)
from statesvc.addons.mappings.mapped_code import PrintedCode
from statesvc.addons.mappings.mapping_list import ListedMapping, listed
from statesvc.addons.mappings.mapping_store import (
    CodeMapping,
    MappingChangedError,
    NotMappedError,
    current_mappings,
    find_mapping,
    mapped_texts,
    mapping_history,
    teach,
)
from statesvc.addons.mappings.preview import MappingPreview, preview_mapping
from statesvc.api import kit

_TAG: Final = "codes"
_MAPPINGS: Final = "/v1/carriers/{carrier_id}/mappings"
_CARRIERS: Final = "/console/carriers"
_CARRIER: Final = _CARRIERS + "/{carrier_id}"
_MAPPING: Final = _CARRIER + "/mappings/{revision}"
_PARTS: Final = ("raw_type", "raw_code", "raw_reason", "raw_text")
_COLUMNS: Final = (
    kit.Column("revision", link=_MAPPING),
    "carrier_id",
    kit.Column(words.code, "Code"),
    kit.Column(words.meaning, "Read as"),
    kit.Column(words.shipped, "Table says"),
    kit.Column(words.redundant, "Redundant"),
    "added_at",
    kit.Column("added_by", "By"),
    "why",
)
_LIST: Final = kit.Table(*_COLUMNS, empty="No code is mapped.")


@kit.operation(
    f"GET {_MAPPINGS}",
    scope="ops",
    tag=_TAG,
    problems=(kit.Code.UNKNOWN_CARRIER, kit.Code.INVALID_CURSOR),
    view=_LIST,
)
async def list_code_mappings(
    context: kit.Context, call: kit.Call[MappingsParameters, None]
) -> kit.Page[ListedMapping]:
    """List a carrier's code mappings.

    Those in effect, next to the entry of this release's own table.
    """
    carrier_id = context.carrier(call.parameters.carrier_id).carrier_id
    async with context.pool.connection() as connection:
        rows = await current_mappings(connection, carrier_id=carrier_id)
        return await _page(context, connection, call, rows, {"carrier_id": carrier_id})


@kit.operation(
    "GET /v1/code-mappings",
    scope="ops",
    tag=_TAG,
    problems=(kit.Code.NOT_FOUND, kit.Code.UNKNOWN_CARRIER, kit.Code.INVALID_CURSOR),
    view=_LIST,
    commands=(
        kit.Command(
            name="carriers mappings",
            summary="list mapped codes; with --revision all rows of a code",
            arguments=("carrier_id",),
            fields=("revision", "include"),
        ),
    ),
)
async def list_mapped_codes(
    context: kit.Context, call: kit.Call[MappedCodesParameters, None]
) -> kit.Page[ListedMapping]:
    """List the code mappings of all carriers.

    Those in effect, or with `revision` those of a single code, the newest first. A mapping of a
    carrier that this release does not know is left out.
    """
    wanted = call.parameters
    context.refuse_unknown(wanted.carrier_id)
    async with context.pool.connection() as connection:
        if wanted.revision is None:
            rows = await current_mappings(connection, carrier_id=wanted.carrier_id)
        else:
            row = await find_mapping(connection, wanted.revision)
            if row is None or wanted.carrier_id not in {None, row.carrier_id}:
                raise kit.Problem(kit.Code.NOT_FOUND, f"there is no revision {wanted.revision}")
            rows = await mapping_history(connection, row.code)
        rows = [row for row in rows if row.carrier_id in context.carriers()]
        bound_to = {"carrier_id": wanted.carrier_id, "revision": wanted.revision}
        return await _page(context, connection, call, rows, bound_to)


@kit.operation(
    f"POST {_MAPPINGS}",
    scope="ops",
    tag=_TAG,
    statuses={kit.CREATED: "mapped"},
    rules=("No event has the code, and `force` is not set.",),
    problems=(kit.Code.UNKNOWN_CARRIER, kit.Code.CONFLICT),
    view=kit.Sentences(words.in_effect, words.EARLIER),
    commands=(
        kit.Command(
            name="carriers map",
            summary="map a code; without --yes, show the events with it",
            fields=(*_PARTS, "meaning.kind", "meaning.status", "meaning.reason", "force", "why"),
            preview="preview_code_mapping",
        ),
        kit.Command(
            name="carriers unmap",
            summary="read a code as the normalizer does, again; without --yes, show its events",
            fields=(*_PARTS, "why"),
            fixed={"meaning": None},
            preview="preview_code_mapping",
        ),
    ),
    forms=(
        kit.Form(
            path=_CARRIER + "/teach",
            title="Map a code of {carrier_id}",
            button="Map the code",
            fields=(*_PARTS, "meaning.kind", "meaning.status", "meaning.reason", "force"),
            preview="preview_code_mapping",
            kept=("replaces",),
            view=kit.Sentences(words.in_effect, "Its history is not read again yet."),
            then=_MAPPING,
            section=_CARRIERS,
        ),
        kit.Form(
            path=_CARRIER + "/unmap",
            title="Take a mapping of {carrier_id} back",
            button="Take it back",
            fields=_PARTS,
            fixed={"meaning": None},
            preview="preview_code_mapping",
            kept=("replaces",),
            view=kit.Sentences(words.in_effect, "Its history is not read again yet."),
            then=_MAPPING,
            section=_CARRIERS,
        ),
    ),
)
async def teach_code(
    context: kit.Context, call: kit.Call[kit.CarrierParameters, TeachRequest]
) -> ListedMapping:
    """Map a code, or take its mapping back.

    In effect at the next claim of every worker; earlier readings stay until they are read
    again. The latest row of a code holds, of those that match an event the narrowest: reason
    and text, reason, text, any. An operator action. 409 with `latest_revision` if the code was
    mapped since `replaces`.
    """
    lesson = call.body
    carrier = context.carrier(call.parameters.carrier_id)
    printed = _printed(lesson, carrier)
    meaning = lesson.meaning.meaning if lesson.meaning is not None else None
    keyring = await context.keyring()
    digest = keyring.carrier_digest(carrier.carrier_id)
    async with context.pool.connection() as connection:
        printed = await as_events_have_it(connection, printed, digest)
        if (
            meaning is not None
            and not lesson.force
            and not await has_events(connection, printed.clear(digest))
        ):
            raise kit.Problem(
                kit.Code.INVALID_REQUEST, f"{words.NO_EVENT}; `force` maps it all the same"
            )
        try:
            actor = call.caller.actor
            revision = await teach(
                connection,
                keyring,
                printed,
                meaning,
                why=lesson.why,
                actor=actor,
                replaces=lesson.replaces,
            )
        except MappingChangedError as error:
            raise kit.Problem(
                kit.Code.CONFLICT,
                f"nothing was done: {error}; preview it again",
                members={"latest_revision": error.revision},
            ) from error
        except NotMappedError as error:
            raise kit.Problem(
                kit.Code.CONFLICT, "no mapping of the code is in effect: the normalizer reads it"
            ) from error
        row = await stored_mapping(connection, carrier.carrier_id, revision)
        texts = await mapped_texts(connection, keyring, carrier)
    return listed(carrier, row, texts, shows_texts=False)


@kit.operation(
    f"POST {_MAPPINGS}/preview",
    scope="ops",
    tag=_TAG,
    problems=(kit.Code.UNKNOWN_CARRIER,),
    is_computed=True,
    view=(
        kit.Sentences(words.previewed),
        kit.Table(
            kit.Column("tracking_number", "Newest"),
            kit.Column("occurred_at", "Happened"),
            kit.Column(words.code, "Code"),
            of="samples",
        ),
    ),
)
async def preview_code_mapping(
    context: kit.Context, call: kit.Call[kit.CarrierParameters, PreviewRequest]
) -> MappingPreview:
    """Preview a mapping.

    Changes no data: counts the events with the code, and shows the newest.
    """
    carrier = context.carrier(call.parameters.carrier_id)
    printed = _printed(call.body, carrier)
    keyring = await context.keyring()
    digest = keyring.carrier_digest(carrier.carrier_id)
    async with context.pool.connection() as connection:
        code = (await as_events_have_it(connection, printed, digest)).clear(digest)
        return await preview_mapping(connection, keyring, code)


@kit.operation(
    f"GET {_MAPPINGS}/{{revision}}",
    scope="ops",
    tag=_TAG,
    problems=(kit.Code.UNKNOWN_CARRIER, kit.Code.NOT_FOUND),
    pages=(
        kit.ConsolePage(
            path=_MAPPING,
            title="Mapping {revision} of {carrier_id}",
            section=_CARRIERS,
            acts=(_MAPPING + "/renormalize",),
            personal="The texts of mapped codes may hold personal data.",
            view=kit.Table(
                *_COLUMNS, kit.Column(words.unmap_words, "Action", link=words.unmap_path)
            ),
        ),
    ),
)
async def get_code_mapping(
    context: kit.Context, call: kit.Call[MappingParameters, None]
) -> kit.Page[ListedMapping]:
    """Show a mapping and its predecessors.

    All rows of its code, the newest first.
    """
    carrier = context.carrier(call.parameters.carrier_id)
    async with context.pool.connection() as connection:
        row = await stored_mapping(connection, carrier.carrier_id, call.parameters.revision)
        rows = await mapping_history(connection, row.code)
        return kit.Page(await _listed(context, connection, call, rows), None)


async def _page(
    context: kit.Context,
    connection: AsyncConnection[Any],
    call: kit.Call[MappingsParameters, None] | kit.Call[MappedCodesParameters, None],
    rows: Sequence[CodeMapping],
    bound_to: Mapping[str, Any],
) -> kit.Page[ListedMapping]:
    """Return the rows from the cursor on, the newest first."""
    wanted, bound_to = call.parameters, {"list": "mappings", **bound_to}
    before = kit.before_number(wanted.cursor, bound_to)
    left = sorted((row for row in rows if row.revision < before), key=lambda row: -row.revision)
    page = left[: wanted.limit]
    return kit.Page(
        await _listed(context, connection, call, page),
        kit.encode_cursor([page[-1].revision], bound_to) if len(left) > wanted.limit else None,
    )


async def _listed(
    context: kit.Context,
    connection: AsyncConnection[Any],
    call: kit.Call[MappingsParameters, None]
    | kit.Call[MappedCodesParameters, None]
    | kit.Call[MappingParameters, None],
    rows: Sequence[CodeMapping],
) -> list[ListedMapping]:
    personal = kit.reads_personal(call, call.parameters.include)
    keyring = await context.keyring()
    carriers = {row.carrier_id: context.carrier(row.carrier_id) for row in rows}
    texts = {
        carrier_id: await mapped_texts(connection, keyring, carrier)
        for carrier_id, carrier in carriers.items()
    }
    # operators' texts may be personal
    read = {row.carrier_id for row in rows if personal and row.code.stand_ins}
    for carrier_id in sorted(read):
        target = f"mapped texts of {carrier_id}"
        await context.readings.record(
            connection, call, name="mappings", target=target, carrier_id=carrier_id
        )
    return [
        listed(carriers[row.carrier_id], row, texts[row.carrier_id], shows_texts=personal)
        for row in rows
    ]


async def stored_mapping(
    connection: AsyncConnection[Any], carrier_id: str, revision: int
) -> CodeMapping:
    row = await find_mapping(connection, revision)
    if row is None or row.carrier_id != carrier_id:
        raise kit.Problem(
            kit.Code.NOT_FOUND, f"{carrier_id} has no mapping with the revision {revision}"
        )
    return row


def _printed(lesson: PreviewRequest, carrier: Carrier) -> PrintedCode:
    printed = lesson.printed(carrier.carrier_id)
    if printed.refusal is not None:
        raise kit.Problem(
            kit.Code.INVALID_REQUEST,
            printed.refusal,
            violations=[kit.Violation("/body", printed.refusal)],
        )
    return printed


OPERATIONS: Final = (
    list_code_mappings,
    list_mapped_codes,
    teach_code,
    preview_code_mapping,
    get_code_mapping,
)
