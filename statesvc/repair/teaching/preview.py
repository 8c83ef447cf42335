"""Preview of history if a code meant something else: the repair itself, of the newest messages with the code, rolled back.

So it answers what the repair would answer: which events it would correct, where shipments would end, how many notifications it would send.
"""

import time
from typing import Annotated, Final
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from events.parsing.meanings import Meaning
from events.vocabulary import Kind, Reason, Status
from statesvc.http.closed_model import ClosedModel
from statesvc.reading.code_mapping import Mappings, mapping_history
from statesvc.reading.mapped_code import MappedCode
from statesvc.repair.renormalize.correction_plan import RenormalizeReport
from statesvc.repair.renormalize.renormalize import RereadTask, reread
from statesvc.repair.teaching.code_events import Connection, newest_with_code

PREVIEWED_MAX: Final = 500
AT_ONCE_FIRST: Final = 5
AT_ONCE_MAX: Final = 50
LOCKED_SECONDS: Final = 0.25
"""Time for which the shipments of some messages should stay locked; messages may hold one event or thousands."""
SECONDS_MAX: Final = 5.0


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
        """Convert a meaning; None where there is none."""
        return (
            None
            if meaning is None
            else cls(kind=meaning.kind, status=meaning.status, reason=meaning.reason)
        )


class ReadingChange(BaseModel):
    """Events whose reading would change."""

    model_config = ConfigDict(populate_by_name=True, frozen=True)

    from_: Annotated[
        str,
        Field(
            alias="from",
            description="The status in effect; `none`: it moves none.",
            examples=["none"],
        ),
    ]
    to: Annotated[str, Field(examples=["delivery_attempted"])]
    events: int


class StatusChange(BaseModel):
    """Shipments whose status would change."""

    model_config = ConfigDict(populate_by_name=True, frozen=True)

    from_: Annotated[str, Field(alias="from", examples=["unknown"])]
    to: Annotated[str, Field(examples=["delivery_attempted"])]
    shipments: int


class MovedShipment(BaseModel):
    """One of them."""

    model_config = ConfigDict(populate_by_name=True, frozen=True)

    shipment_id: UUID
    tracking_number: str
    from_: Annotated[str, Field(alias="from")]
    to: str


class MappingPreview(BaseModel):
    """Effects of teaching a code and reading its history again."""

    replaces: Annotated[
        int,
        Field(
            description="The code's latest revision, 0 for none: send it along, so that nobody else's is replaced."
        ),
    ]
    in_effect: Annotated[
        CodeMeaning | None,
        Field(
            description="What a mapping in effect says; null: the carrier's normalizer reads the code."
        ),
    ]
    events: Annotated[int, Field(description="Events of the log with the code.")]
    shipments: int
    messages: int
    counts_capped: Annotated[
        bool,
        Field(
            description="The three are lower bounds: older events that are read otherwise were not searched for."
        ),
    ]
    previewed_messages: Annotated[
        int, Field(description="The newest of the messages: what follows is of them alone.")
    ]
    corrected: Annotated[int, Field(description="Events that would be read differently.")]
    unreadable: Annotated[
        int,
        Field(
            description="Events that stay as they are: their message is erased or gone, and their codes do not decide."
        ),
    ]
    readings: Annotated[
        list[ReadingChange],
        Field(description="The events that would be read differently, the most frequent first."),
    ]
    moved: Annotated[
        list[StatusChange],
        Field(description="The shipments whose status would change, the most frequent first."),
    ]
    transitions: int
    updates: Annotated[
        int,
        Field(
            description="Shipments that keep their status, but whose reason, times or signer would change."
        ),
    ]
    notifications: Annotated[
        int, Field(description="That would go out, for the subscriptions of now.")
    ]
    examples: Annotated[
        list[MovedShipment], Field(description="Some of the shipments whose status would change.")
    ]


async def preview_mapping(
    connection: Connection,
    task: RereadTask,
    code: MappedCode,
    meaning: Meaning | None,
    *,
    previewed_max: int = PREVIEWED_MAX,
) -> MappingPreview:
    """Preview without changing anything. `task` says who asks and with which keys; `meaning` None: as the normalizer says.

    The shipments of some messages at a time are locked while these are previewed, for about LOCKED_SECONDS.
    """
    mappings = Mappings()
    await mappings.refresh(connection)
    proposed = mappings.if_mapped(code, meaning)
    rows = await mapping_history(connection, code)
    found = await newest_with_code(connection, code, messages_max=previewed_max)
    report = RenormalizeReport()
    began = time.monotonic()
    previewed, at_once = 0, AT_ONCE_FIRST
    while previewed < len(found.message_ids) and time.monotonic() - began < SECONDS_MAX:
        part = found.message_ids[previewed : previewed + at_once]
        part_began = time.monotonic()
        report.add(await reread(connection, task, part, proposed))
        previewed += len(part)
        at_once = max(
            1,
            min(
                AT_ONCE_MAX,
                int(at_once * LOCKED_SECONDS / max(time.monotonic() - part_began, 0.001)),
            ),
        )
    return MappingPreview(
        replaces=rows[0].revision if rows else 0,
        in_effect=CodeMeaning.of(rows[0].meaning) if rows else None,
        events=found.events,
        shipments=found.shipments,
        messages=found.messages,
        counts_capped=found.is_capped,
        previewed_messages=previewed,
        corrected=report.corrected,
        unreadable=report.unreadable,
        readings=[
            ReadingChange(from_=before, to=now, events=count)
            for (before, now), count in report.changes.most_common()
        ],
        moved=[
            StatusChange(from_=before, to=now, shipments=count)
            for (before, now), count in report.moved.most_common()
        ],
        transitions=report.transitions,
        updates=report.updates,
        notifications=report.notifications,
        examples=[
            _example(shipment_id, *moved) for shipment_id, moved in report.moved_shipments.items()
        ],
    )


def _example(shipment_id: UUID, number: str, before: str, now: str) -> MovedShipment:
    return MovedShipment(shipment_id=shipment_id, tracking_number=number, from_=before, to=now)
