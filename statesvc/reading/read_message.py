"""Reading of a leased message: open the seal, run the carrier's normalizer. No I/O.

For any body the answer is a value: the reading, or the reason why an operator must decide. Its
texts quote no part of the body. Events that a worker in another language handed over
(docs/claim-protocol.md) replace our own reading; every field is checked.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Final, NamedTuple
from uuid import UUID

from events.carriers.carrier import Carrier
from events.crypto.keyring import Keyring, body_context
from events.crypto.sealing import SealError, SealingKey, commitment, unsalted
from events.entry.kinds import Provenance
from events.errors import Cause, UnreadableMessageError
from events.event import Event, Normalized, Numbered, Rejection, value
from events.identity.ids import identify, numbered
from events.normalized import load
from events.parsing.named_numbers import NUMBERS_MAX, named_numbers, names_only
from statesvc.queue.claim import Burial, Message
from statesvc.reading.code_mapping import Mappings
from statesvc.reading.reading_name import READER, is_foreign

# The stage of a handed-over message.
NORMALIZED: Final = "normalized"

# Numbers that a message without events may name: each becomes a stream with only a key.
NUMBERS_WITHOUT_EVENTS_MAX: Final = 32


class Handover(NamedTuple):
    normalized: Normalized
    normalizer: str
    version: str


def open_handover(message: Message, body_key: SealingKey) -> Handover:
    """Open and check the hand-over.

    Raises UnreadableMessageError, `normalizer_failed`: a defect of the worker that sealed it.
    """
    reader = READER.fullmatch(message.normalized_by or "")
    if reader is None:
        raise UnreadableMessageError(
            Cause.NORMALIZER_FAILED, "the hand-over's normalizer is not called `name@version`"
        )
    if message.normalized is None:
        raise UnreadableMessageError(
            Cause.NORMALIZER_FAILED, "the message is marked as handed over, but nothing was"
        )
    try:
        # sealed under the body's key: only a worker that leased the message can have made it
        document = body_key.open(message.normalized, body_context(message.message_id))
    except SealError as error:
        raise UnreadableMessageError(
            Cause.NORMALIZER_FAILED, f"the hand-over does not open: {error}"
        ) from error
    return Handover(load(document), reader[1], reader[2])


@value(frozen=True, slots=True, kw_only=True)
class Read:
    """A message that was read: its events with their identity, and the key of its body."""

    source: Provenance
    carrier_id: str
    events: tuple[Event, ...]
    rejections: tuple[Rejection, ...]
    numbers: tuple[Numbered, ...] = ()
    """Numbers that it names without an event."""
    keeps_body: bool = True
    """False if it names too many numbers to make a key for each: its body cannot be
    opened after it is settled.
    """
    tried_on: str | None = None
    """The foreign candidate that it is tried on, once it has taken effect."""
    body_key: SealingKey = field(repr=False)
    sealed_key: bytes = field(repr=False)
    """The body's key as the inbox held it, left as it is when the message names no shipment."""

    @property
    def message_id(self) -> UUID:
        return self.source.message_id

    @property
    def normalizer(self) -> str:
        """The code and version that read it, `name@version`."""
        return f"{self.source.normalizer}@{self.source.normalizer_version}"

    def shipments(self) -> tuple[UUID, ...]:
        """Return all shipments that it names, with or without an event."""
        said = {event.numbered.shipment_id for event in self.events}
        return tuple(sorted(said | {one.shipment_id for one in self.numbers}))

    @property
    def empty(self) -> bool:
        """A notice or an empty answer."""
        return not self.events and not self.rejections


def read_message(
    message: Message,
    *,
    keyring: Keyring,
    carriers: Mapping[str, Carrier],
    mappings: Mappings | None = None,
    version: str | None = None,
) -> Read | Burial:
    """Open and normalize a message with the operators' mappings.

    `version` of its carrier's code; default: the stable version.
    """
    carrier = carriers.get(message.carrier_id)
    if carrier is None:
        return Burial(
            message_id=message.message_id,
            cause=Cause.UNKNOWN_FORMAT,
            detail="no carrier of this id is registered any more",
        )
    context = body_context(message.message_id)
    # before anything can fail: a dead letter must name who read it
    reader = message.normalized_by or f"{carrier.carrier_id}@{version or carrier.stable}"
    try:
        body_key = keyring.inbox.unwrap(message.sealed_key, context)
        salted_body = body_key.open(message.sealed, context)
    except SealError as error:
        return Burial(
            message_id=message.message_id,
            cause=Cause.UNREADABLE,
            detail=f"the stored body does not open: {error}",
        )
    # the seal alone does not prove it: whoever has the inbox key could have sealed another body
    if commitment(salted_body) != message.commitment:
        return Burial(
            message_id=message.message_id,
            cause=Cause.UNREADABLE,
            detail="the stored body is not the one that was committed to",
        )
    try:
        normalized, normalizer, read_by = _read(
            message, carrier, version or carrier.stable, body_key, salted_body
        )
        events, rejections = _identify(normalized, carrier.carrier_id, keyring)
        # before the mappings, which change meanings and never numbers
        numbers = _only_named(unsalted(salted_body), carrier, events)
        # by identity: the version of the log names a revision only where that changed the reading
        if mappings is not None and (mapped := mappings.read(events, keyring)) is not events:
            events, read_by = mapped, mappings.version(read_by)
    except UnreadableMessageError as error:
        named = _named(salted_body, carrier)
        return Burial(
            message_id=message.message_id,
            cause=error.cause,
            detail=error.detail,
            normalizer=reader,
            shipments=named,
        )
    except MemoryError:
        # this process's limit, not the message's fault: its lease ends, and it is then processed
        # alone
        raise
    # a defect in one normalizer must not stop the others' messages
    except Exception as error:  # noqa: BLE001
        named, detail = _named(salted_body, carrier), _where(error)
        return Burial(
            message_id=message.message_id,
            cause=Cause.NORMALIZER_FAILED,
            detail=detail,
            normalizer=reader,
            shipments=named,
        )
    return Read(
        source=Provenance(
            message_id=message.message_id,
            body_commitment=message.commitment,
            received_at=message.received_at,
            normalizer=normalizer,
            normalizer_version=read_by,
            notify=message.notify,
        ),
        carrier_id=carrier.carrier_id,
        events=events,
        rejections=rejections,
        numbers=numbers or (),
        keeps_body=numbers is not None,
        tried_on=_tried_on(message),
        body_key=body_key,
        sealed_key=message.sealed_key,
    )


def _tried_on(message: Message) -> str | None:
    candidate = message.candidate
    return candidate if message.shadow and not message.in_share and is_foreign(candidate) else None


def _named(salted_body: bytes, carrier: Carrier) -> tuple[UUID, ...]:
    return tuple(one.shipment_id for one in _numbers(unsalted(salted_body), carrier))


def _only_named(
    body: bytes, carrier: Carrier, events: Sequence[Event]
) -> tuple[Numbered, ...] | None:
    """Return the numbers that a message names and has no event of; None: too many."""
    printed = {event.tracking_number for event in events}
    # the usual push names a single number: a quick check spares the search for others
    if len(printed) == 1 and names_only(body, carrier.number_fields, *printed):
        return ()
    said = {event.numbered.number for event in events}
    others = tuple(one for one in _numbers(body, carrier) if one.number not in said)
    return (
        # a stranger's body may name thousands: each would be a row, a key and a lock
        others if len(others) <= (NUMBERS_MAX if events else NUMBERS_WITHOUT_EVENTS_MAX) else None
    )


def _numbers(body: bytes, carrier: Carrier) -> list[Numbered]:
    """Return the numbers that a message names, each in a single spelling."""
    found = (
        numbered(carrier.carrier_id, printed)
        for printed in named_numbers(body, carrier.number_fields)
    )
    by_number = {one.number: one for one in found if one.number}
    # sorted: the body's key is wrapped under the keys of all of them
    return [by_number[number] for number in sorted(by_number)]


def _read(
    message: Message, carrier: Carrier, version: str, body_key: SealingKey, salted_body: bytes
) -> Handover:
    if message.stage == NORMALIZED:
        return open_handover(message, body_key)
    normalized = carrier.read(unsalted(salted_body), message.received_at, version)
    return Handover(normalized, carrier.carrier_id, carrier.recorded_version(version))


def _identify(
    normalized: Normalized, carrier_id: str, keyring: Keyring
) -> tuple[tuple[Event, ...], tuple[Rejection, ...]]:
    numbered = [reading for reading in normalized.readings if reading.tracking_number]
    unnumbered = len(normalized.readings) - len(numbered)
    if unnumbered and not numbered:
        raise UnreadableMessageError(
            Cause.NO_TRACKING_NUMBER,
            f"{unnumbered} events, and no field of the message holds a tracking number",
        )
    rejections = normalized.rejections
    if unnumbered:
        rejections = (
            *rejections,
            Rejection(pointer="", why=f"{unnumbered} events have no tracking number"),
        )
    digest = keyring.carrier_digest(carrier_id)
    return tuple(
        identify(reading, carrier_id=carrier_id, digest=digest) for reading in numbered
    ), rejections


def _where(error: Exception) -> str:
    """Return type and position of a defect; its text may quote the body."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return type(error).__name__
    return (
        f"{type(error).__name__} in {trace.tb_frame.f_globals.get('__name__', '?')} line"
        f" {trace.tb_lineno}"
    )
