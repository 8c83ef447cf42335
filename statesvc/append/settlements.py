"""Settlements: the shipments that a message names, and its body's key under the
keys of all of them. Pure.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Final
from uuid import UUID

from events.crypto.sealing import SealingKey
from events.entry.proposal import Proposal
from statesvc.bodies.sealed_message import wrap_body_key
from statesvc.log.event_store import ReferencedStream
from statesvc.queue.claim import Settlement
from statesvc.reading.read_message import Read

_MESSAGE_AND_SHIPMENT: Final = attrgetter("message", "shipment_id")


def referenced_streams(
    reads: Sequence[Read], proposals: Iterable[Proposal]
) -> dict[tuple[int, UUID], ReferencedStream]:
    """Return the shipments that messages (by index) name, with or without an event.

    A bare number has no discriminator.
    """
    named = {
        # first, so that a proposal with its discriminator replaces the bare number below
        (index, one.shipment_id): ReferencedStream(
            read.carrier_id, one.number, "", read.source.received_at
        )
        for index, read in enumerate(reads)
        for one in read.numbers
    }
    # those of a message follow each other, mostly about one shipment
    for of_one, its in groupby(proposals, key=_MESSAGE_AND_SHIPMENT):
        first = next(its)
        named[of_one] = ReferencedStream(
            first.event.carrier_id,
            first.event.numbered.number,
            first.event.discriminator,
            first.source.received_at,
        )
    return named


def settlements_of(
    reads: Mapping[int, Read],
    named: Iterable[tuple[int, UUID]],
    keys: Mapping[UUID, SealingKey | None],
) -> list[Settlement]:
    """Return the settlements of the messages, by index. `named`: the shipments that each names."""
    shipments: dict[int, set[UUID]] = {index: set() for index in reads}
    for index, shipment in named:
        if shipment in keys:
            shipments[index].add(shipment)
    return [_settlement(read, sorted(shipments[index]), keys) for index, read in reads.items()]


def _settlement(
    read: Read, shipments: list[UUID], keys: Mapping[UUID, SealingKey | None]
) -> Settlement:
    """Wrap the body's key once for all shipments that the message names: erasing any one
    makes the body unreadable.
    """
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
