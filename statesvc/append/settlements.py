"""What a message's verdict says: which shipments it names, and its body's key under the keys of all of them. Pure."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from uuid import UUID

from events.crypto.sealing import SealingKey
from events.identity import shipment_id
from events.log.proposal import Proposal
from statesvc.bodies.body_key import wrap_body_key
from statesvc.inbox.claim import Settlement
from statesvc.inbox.read_message import Read
from statesvc.log.event_store import NamedStream


def only_named(reads: Sequence[Read]) -> dict[tuple[int, UUID], NamedStream]:
    """The shipments that messages (by their place) name without an event; a bare number has no discriminator."""
    return {
        (place, shipment_id(read.carrier_id, number, "")): NamedStream(read.carrier_id, number, "", read.source.received_at)
        for place, read in enumerate(reads)
        for number in read.numbers
    }


def stream_of(proposal: Proposal) -> NamedStream:
    """The stream that a proposal names."""
    return NamedStream(proposal.event.carrier_id, proposal.number, proposal.event.discriminator, proposal.source.received_at)


def split_locked(reads: Sequence[Read], named: Iterable[tuple[int, UUID]], locked: Collection[UUID]) -> tuple[list[Read], list[Read]]:
    """The messages that go on, and those that are set aside: they name a locked shipment, or one that an earlier one of these names."""
    shipments: list[set[UUID]] = [set() for _ in reads]
    for place, each in named:
        shipments[place].add(each)
    going_on, aside, before = list[Read](), list[Read](), set(locked)
    for read, its in zip(reads, shipments, strict=True):
        if before.isdisjoint(its):
            going_on.append(read)
        else:
            before |= its
            aside.append(read)
    return going_on, aside


def settlements_of(reads: Sequence[Read], named: Iterable[tuple[int, UUID]], keys: Mapping[UUID, SealingKey | None]) -> list[Settlement]:
    """`named`: the shipments that the messages (by their place) name."""
    shipments: list[set[UUID]] = [set() for _ in reads]
    for place, shipment in named:
        if shipment in keys:
            shipments[place].add(shipment)
    return [_settlement(read, sorted(its), keys) for read, its in zip(reads, shipments, strict=True)]


def _settlement(read: Read, shipments: list[UUID], keys: Mapping[UUID, SealingKey | None]) -> Settlement:
    """Wraps the body's key once for all shipments that the message names: erasing any one makes the body unreadable."""
    sealed: bytes | None = read.sealed_key if read.keeps_body else None
    if shipments and read.keeps_body:
        sealed = wrap_body_key(read.body_key, shipments, message_id=read.message_id, keys=keys)
    return Settlement(
        message_id=read.message_id,
        events=len(read.events),
        empty=read.empty,
        normalizer=read.normalizer,
        shipments=tuple(shipments),
        sealed_key=sealed,
    )
