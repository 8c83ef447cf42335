"""The fields that verification reads from an entry's canonical document, decoded
straight from the bytes.

A whole log is decoded here, so only the named fields become objects; the hash over all bytes covers
the others. A document that lacks a field, or has another kind or an unknown format, raises
ValueError. Times stay text. Fields stand in about the order in which canonical bytes have them: in
that order they are found at once.
"""

from typing import Annotated, Any, Final, Literal, TypeAlias

from msgspec import Meta, Struct, field
from msgspec.json import Decoder

from events.entry.kinds import FIRST_EPOCH, FORMAT
from events.vocabulary import TzSource

# Outcome of a try, or a notification, that ends well.
DELIVERED: Final = "delivered"
Format: TypeAlias = Annotated[int, Meta(ge=1, le=FORMAT)]


class RawDocument(Struct, frozen=True, gc=False):
    type: str | None = None
    code: str | None = None
    reason: str | None = None
    further: tuple[str, ...] = ()
    wall: str | None = None
    text: str | None = None


class PlaceDocument(Struct, frozen=True, gc=False):
    """The place of a statement, as far as it may be part of an identity."""

    city: str | None = None
    region: str | None = None
    country: str | None = None
    facility: str | None = None


class StatementDocument(Struct, frozen=True, gc=False, kw_only=True):
    """A carrier's statement, as events and conflicts bind it."""

    anchor: str | None = None
    by_category: bool = False
    carrier_code: str | None = None
    carrier_id: str
    corrects: str | None = None
    discriminator: str
    epoch: int = FIRST_EPOCH
    estimated_delivery: str | None = None
    event_id: str
    format: Format
    kind: str
    location: PlaceDocument
    message_id: str
    normalizer: str
    normalizer_version: str
    occurred_at: str
    part_commitment: str | None = None
    piece: str | None = None
    raw: RawDocument
    received_at: str
    recorded_at: str
    shipment_id: str
    stamp: str | None = None
    status: str | None = None
    tracking_number: str
    tz_source: TzSource


class EventDocument(StatementDocument, frozen=True, gc=False, kw_only=True):
    entry: Literal["event"]
    previous_hash: str
    version: int


class ConflictDocument(StatementDocument, frozen=True, gc=False, kw_only=True):
    claimed_shipment_id: str
    entry: Literal["conflict"]
    facts_digest: str


class TransitionDocument(Struct, frozen=True, gc=False):
    entry: Literal["transition"]
    format: Format
    shipment_id: str
    sequence: int
    recorded_at: str
    message_id: str
    from_status: str = field(name="from")
    to_status: str = field(name="to")
    event_id: str
    worker: str
    epoch: int = FIRST_EPOCH


class FanoutDocument(Struct, frozen=True, gc=False):
    entry: Literal["fanout"]
    format: Format
    shipment_id: str
    sequence: int
    event: str
    from_status: str = field(name="from")
    to_status: str = field(name="to")
    subscriptions: list[str]
    recorded_at: str
    replayed: bool = False
    kind: str | None = field(name="type", default=None)
    epoch: int = FIRST_EPOCH


class TryDocument(Struct, frozen=True, gc=False):
    number: int
    started_at: str
    duration_ms: int
    outcome: str
    status_code: int | None = None

    def listed(self, sequence: int) -> dict[str, Any]:
        return {
            "sequence": sequence,
            "number": self.number,
            "outcome": self.outcome,
            "status_code": self.status_code,
            "duration_ms": self.duration_ms,
            "started_at": self.started_at,
        }


class CoveredDocument(Struct, frozen=True, gc=False):
    """A notification that ended with another one."""

    sequence: int
    tries: list[TryDocument] = []


class AttemptDocument(Struct, frozen=True, gc=False):
    entry: Literal["attempt"]
    format: Format
    shipment_id: str
    sequence: int
    subscription_id: str
    recorded_at: str
    webhook_id: str
    outcome: str
    tries: list[TryDocument]
    covers: list[CoveredDocument] = []
    part_commitment: str | None = None
    epoch: int = FIRST_EPOCH

    @property
    def number(self) -> int:
        """Number of the last try, 0 if there was none."""
        return self.tries[-1].number if self.tries else 0

    @property
    def only_try(self) -> TryDocument | None:
        """The first try, if it alone delivered the notification and covered no other."""
        if len(self.tries) != 1 or self.covers:
            return None
        (made,) = self.tries
        return made if made.number == 1 and made.outcome == self.outcome == DELIVERED else None

    @property
    def listed_tries(self) -> list[dict[str, Any]]:
        """All tries, those at covered notifications included."""
        own = [made.listed(self.sequence) for made in self.tries]
        return own + [
            made.listed(covered.sequence) for covered in self.covers for made in covered.tries
        ]


class ObservationDocument(Struct, frozen=True, gc=False):
    entry: Literal["observation"]
    format: Format
    shipment_id: str
    version: int
    kind: str
    since: str
    recorded_at: str
    epoch: int = FIRST_EPOCH


class ActionDocument(Struct, frozen=True, gc=False):
    entry: Literal["action"]
    format: Format
    actor: str
    verb: str
    target: str
    recorded_at: str
    epoch: int = FIRST_EPOCH


SealedDocument: TypeAlias = EventDocument | ConflictDocument | AttemptDocument

event: Final = Decoder(EventDocument).decode
conflict: Final = Decoder(ConflictDocument).decode
transition: Final = Decoder(TransitionDocument).decode
fanout: Final = Decoder(FanoutDocument).decode
attempt: Final = Decoder(AttemptDocument).decode
observation: Final = Decoder(ObservationDocument).decode
action: Final = Decoder(ActionDocument).decode
