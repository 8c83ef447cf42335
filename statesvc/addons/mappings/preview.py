"""Preview of a mapping: how many events have the code, and the newest of them."""

from typing import Annotated, Final

from pydantic import BaseModel, Field

from events.crypto.keyring import Keyring
from events.parsing.meanings import Meaning
from events.vocabulary import Kind, Reason, Status
from statesvc.addons.mappings.code_events import Connection, events_with_code
from statesvc.addons.mappings.mapped_code import MappedCode
from statesvc.addons.mappings.mapping_store import mapping_history
from statesvc.addons.mappings.samples import CodeSample
from statesvc.http.closed_model import ClosedModel

_SAMPLES: Final = 10
_Zero = Annotated[int, Field(deprecated=True, description="Always 0 since 0.2.")]
_Empty = Annotated[list[str], Field(deprecated=True, description="Always empty since 0.2.")]


class CodeMeaning(ClosedModel):
    """Meaning of a code."""

    kind: Annotated[
        Kind,
        Field(
            description="`scan` or `info`, and of the shipped table also `unmapped`.",
            examples=["scan"],
        ),
    ]
    status: Annotated[Status | None, Field(examples=["delivery_attempted"])] = None
    reason: Annotated[Reason | None, Field(examples=["consignee_absent"])] = None

    @classmethod
    def of(cls, meaning: Meaning | None) -> "CodeMeaning | None":
        """Convert a meaning, if any."""
        return (
            None
            if meaning is None
            else cls(kind=meaning.kind, status=meaning.status, reason=meaning.reason)
        )


class MappingPreview(BaseModel):
    """The events that a mapping concerns."""

    replaces: Annotated[
        int,
        Field(
            description=(
                "The code's latest revision, 0 for none: send it along, so that nobody else's is"
                " replaced."
            )
        ),
    ]
    in_effect: Annotated[
        CodeMeaning | None,
        Field(
            description=(
                "What a mapping in effect says; null: the carrier's normalizer reads the code."
            )
        ),
    ]
    events: Annotated[int, Field(description="Events of the log with the code.")]
    shipments: int
    messages: int
    counts_capped: Annotated[
        bool,
        Field(
            description=(
                "The three are lower bounds: older events that are read otherwise were not searched"
                " for."
            )
        ),
    ]
    samples: Annotated[list[CodeSample], Field(description="The newest events, without texts.")]
    previewed_messages: _Zero = 0
    corrected: _Zero = 0
    unreadable: _Zero = 0
    readings: _Empty = []
    moved: _Empty = []
    transitions: _Zero = 0
    updates: _Zero = 0
    notifications: _Zero = 0
    examples: _Empty = []


async def preview_mapping(
    connection: Connection, keyring: Keyring, code: MappedCode
) -> MappingPreview:
    rows = await mapping_history(connection, code)
    found = await events_with_code(connection, code, newest=_SAMPLES)
    return MappingPreview(
        replaces=rows[0].revision if rows else 0,
        in_effect=CodeMeaning.of(rows[0].meaning) if rows else None,
        events=found.events,
        shipments=found.shipments,
        messages=found.messages,
        counts_capped=found.is_capped,
        samples=[row.sample(keyring) for row in found.newest],
    )
