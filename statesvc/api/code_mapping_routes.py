"""Where the calls about code mappings are, and what they promise."""

from collections.abc import Mapping, Sequence
from typing import Final

from events.carriers.carrier import Carrier
from events.crypto.keyring import Keyring
from statesvc.api.code_mapping_calls import CodeMappingCalls
from statesvc.api.code_mapping_models import (
    CarrierMappingParameters,
    ExportParameters,
    MappingParameters,
    MappingsParameters,
    PreviewRequest,
    Renormalized,
    RenormalizeParameters,
    RenormalizeRequest,
    SampleParameters,
    TeachRequest,
    UnmappedParameters,
)
from statesvc.api.personal_reads import PersonalReadings
from statesvc.database.pool import Connections
from statesvc.database.wakeups.waker import Wakes
from statesvc.http.operation import Route, route
from statesvc.http.paging import Page
from statesvc.http.problem import CREATED, Code
from statesvc.log.archive.folder import ArchivePath
from statesvc.repair.teaching.mapping_list import ListedMapping, MappingExport
from statesvc.repair.teaching.preview import MappingPreview
from statesvc.repair.teaching.samples import CodeSample
from statesvc.repair.teaching.unmapped_codes import UnmappedCode

_TAG: Final = "codes"
_MAPPINGS: Final = "/v1/carriers/{carrier_id}/mappings"
_LONG_SECONDS: Final = 30.0


def routes(
    pool: Connections,
    keyring: Keyring,
    waker: Wakes,
    readings: PersonalReadings,
    *,
    carriers: Mapping[str, Carrier],
    archive: ArchivePath | None,
) -> Sequence[Route]:
    """The calls. `archive`: the folder of older bodies."""
    calls = CodeMappingCalls(pool=pool, keyring=keyring, waker=waker, readings=readings, carriers=carriers, archive=archive)
    return [
        route(
            "GET /v1/unmapped-codes",
            calls.unmapped,
            operation_id="list_unmapped_codes",
            summary="List unknown codes",
            description="Codes that no mapping knows yet, with their open dead letter, and codes read by their category only.",
            scope="ops",
            tag=_TAG,
            parameters=UnmappedParameters,
            response=Page[UnmappedCode],
        ),
        route(
            "GET /v1/unmapped-codes/samples",
            calls.samples,
            operation_id="list_unmapped_code_samples",
            summary="Show events with an unknown code",
            description="The newest first; with `include=personal` the texts that the carrier printed.",
            scope="ops",
            tag=_TAG,
            parameters=SampleParameters,
            response=Page[CodeSample],
            problems=(Code.UNKNOWN_CARRIER,),
        ),
        route(
            f"GET {_MAPPINGS}",
            calls.mappings,
            operation_id="list_code_mappings",
            summary="List a carrier's code mappings",
            description="Those in effect, next to what this release's own table says.",
            scope="ops",
            tag=_TAG,
            parameters=MappingsParameters,
            response=Page[ListedMapping],
            problems=(Code.UNKNOWN_CARRIER, Code.INVALID_CURSOR),
        ),
        route(
            f"POST {_MAPPINGS}",
            calls.teach,
            operation_id="teach_code",
            summary="Map a code, or take its mapping back",
            description=(
                "In effect at the next claim of every worker; what was read before stays until it is read again. The latest row of a "
                "code holds, of those that match an event the narrowest: reason and text, reason, text, any. An operator action. "
                "409 with `latest_revision` where the code was mapped since `replaces`."
            ),
            scope="ops",
            tag=_TAG,
            parameters=CarrierMappingParameters,
            request=TeachRequest,
            response=ListedMapping,
            statuses={CREATED: "mapped"},
            rules=("No event has the code, and `force` is not set.",),
            problems=(Code.UNKNOWN_CARRIER, Code.CONFLICT),
        ),
        route(
            f"POST {_MAPPINGS}/preview",
            calls.preview,
            operation_id="preview_code_mapping",
            summary="Preview a mapping",
            description=(
                "Changes nothing: reads the newest messages with the code again as if it were mapped, and answers which events would "
                "be read differently, which shipments would change, and how many notifications would go out."
            ),
            scope="ops",
            tag=_TAG,
            parameters=CarrierMappingParameters,
            request=PreviewRequest,
            response=MappingPreview,
            problems=(Code.UNKNOWN_CARRIER,),
            is_computed=True,
            deadline_seconds=_LONG_SECONDS,
        ),
        route(
            f"GET {_MAPPINGS}/export",
            calls.export,
            operation_id="export_code_mappings",
            summary="Export a carrier's mappings as a patch",
            description=(
                "Of the carrier's table in the repository, for `git apply`. Mappings of texts are in it with `include=personal` only."
            ),
            scope="ops",
            tag=_TAG,
            parameters=ExportParameters,
            response=MappingExport,
            problems=(Code.UNKNOWN_CARRIER,),
        ),
        route(
            f"GET {_MAPPINGS}/{{revision}}",
            calls.show,
            operation_id="get_code_mapping",
            summary="Show a mapping and what came before it",
            description="All rows of its code, the newest first.",
            scope="ops",
            tag=_TAG,
            parameters=MappingParameters,
            response=Page[ListedMapping],
            problems=(Code.UNKNOWN_CARRIER, Code.NOT_FOUND),
        ),
        route(
            f"POST {_MAPPINGS}/{{revision}}/renormalize",
            calls.renormalize,
            operation_id="renormalize_code_mapping",
            summary="Read the history of a mapped code again",
            description=(
                "Reads the messages with the code again, as many as fit into a call, and appends what comes out differently; go on "
                "with `next_cursor`. At the end the open dead letter of the code is settled, where all of its events are known. An "
                "operator action."
            ),
            scope="ops",
            tag=_TAG,
            parameters=RenormalizeParameters,
            request=RenormalizeRequest,
            response=Renormalized,
            problems=(Code.UNKNOWN_CARRIER, Code.NOT_FOUND, Code.INVALID_CURSOR),
            deadline_seconds=_LONG_SECONDS,
        ),
    ]
