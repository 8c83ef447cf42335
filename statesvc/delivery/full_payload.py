"""Full payloads: the notification's event, and the shipment's state right after it.

Both are made from the log at each attempt, from the events up to the named event, so they never
change, except by an erasure: then personal fields are absent and `erased` is true.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

import orjson
import structlog

from events.crypto.keyring import Keyring
from events.crypto.sealing import SealError
from projections.row import rebuilt_row
from statesvc.database.queries import Sender, columns, queries
from statesvc.delivery.notification_data import NotifiedShipment
from statesvc.files.archive_errors import ArchivedHistoryError
from statesvc.log.json_compression import decompress_json
from statesvc.shipments.find import summary_of
from statesvc.shipments.models import Signer, StatedEvent
from statesvc.shipments.personal import HIDDEN, Opener
from statesvc.shipments.timeline import stated_event

_SQL = queries("statesvc.delivery", "full_payload")
_log = structlog.get_logger()

Named = tuple[UUID, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class FullPayload:
    """The event and the shipment as the API shows them.

    `erased`: its personal fields are gone for good.
    """

    event: StatedEvent = field(repr=False)
    shipment: NotifiedShipment = field(repr=False)
    erased: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ShipmentPast:
    """A shipment's events up to one, oldest first: canonical bytes and sealed personal parts."""

    canonicals: list[bytes] = field(repr=False)
    sealed_parts: list[bytes | None] = field(repr=False)

    def full(self, shipment_id: UUID, *, erased: bool, opener: Opener | None) -> FullPayload:
        documents = [orjson.loads(canonical) for canonical in self.canonicals]
        row = rebuilt_row(shipment_id, self.canonicals)
        personal, signer = HIDDEN, Signer()
        if opener is not None and not opener.erased:
            parts = {
                document["event_id"]: sealed
                for document, sealed in zip(documents, self.sealed_parts, strict=True)
            }
            personal = opener.part(documents[-1]["event_id"], self.sealed_parts[-1])
            signed_by = row.signed_by_event_id
            signer = {
                "signed_by": None
                if signed_by is None
                else opener.part(signed_by, parts.get(signed_by)).fields["signed_by"]
            }
        return FullPayload(
            event=stated_event(documents[-1], personal),
            shipment={**summary_of(row), **signer},
            erased=erased,
        )


async def read_past(
    connection: Sender, named: Sequence[Named], *, thin: frozenset[UUID]
) -> dict[Named, ShipmentPast]:
    """Read the past of each notification; none for shipments in `thin` with an archived part.

    Raises ArchivedHistoryError where another has one.
    """
    if not named:
        return {}
    found: dict[Named, ShipmentPast] = defaultdict(
        lambda: ShipmentPast(canonicals=[], sealed_parts=[])
    )
    asked = columns(sorted(set(named)), ("shipment_ids", "sequences"))
    span = await (
        await connection.execute(
            _SQL["recorded_span"], {"shipment_ids": asked["shipment_ids"]}, binary=True
        )
    ).fetchone()
    since, until = span or (None, None)
    cursor = await connection.execute(
        _SQL["histories"], {**asked, "since": since, "until": until}, binary=True, prepare=False
    )
    for shipment_id, sequence, canonical, sealed_part in await cursor.fetchall():
        past = found[shipment_id, sequence]
        past.canonicals.append(decompress_json(canonical))
        past.sealed_parts.append(sealed_part)
    # versions have no gaps, so what is archived shows by itself
    lacking = {each for each in named if len(found[each].canonicals) < each[1]}
    if archived := {shipment_id for shipment_id, _ in lacking} - thin:
        raise ArchivedHistoryError(archived)
    return {each: past for each, past in found.items() if each not in lacking}


def full_payload_of(
    past: ShipmentPast | None,
    keyring: Keyring,
    shipment_id: UUID,
    sealed_key: bytes | None,
    *,
    pii: bool,
) -> FullPayload | None:
    """Build the full part; None where only the change can be sent.

    A key that does not open counts as none, and is logged as an error.
    """
    if past is None:
        return None
    try:
        opener = Opener.of_stream(keyring, shipment_id, sealed_key) if pii else None
        return past.full(shipment_id, erased=sealed_key is None, opener=opener)
    except SealError as error:
        _log.error("shipment_key_unreadable", shipment_id=shipment_id, error=error)
        return past.full(shipment_id, erased=False, opener=None)
