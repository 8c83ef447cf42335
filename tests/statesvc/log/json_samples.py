"""Entries as tables hold them, of all carriers' fixtures: what dictionaries are trained with, and
what they are measured on.

`python -m tests.statesvc.log.json_samples NUMBER` writes the dictionary of a number that there is
none of yet. One that landed is never written again: rows that it compressed stay for years.
"""

import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, Final
from uuid import UUID

import zstandard

from events.carriers import CARRIERS
from events.entry.kinds import (
    Provenance,
    attempt_document,
    event_document,
    fanout_document,
    leaf,
    transition_document,
    try_document,
)
from events.errors import UnreadableMessageError
from events.event import Event
from events.identity.ids import identify
from statesvc.log.json_compression import dictionary_path
from tests.events.carriers.carrier_fixtures import fixture_paths, read

_DICTIONARY_BYTES: Final = 16_384
_READINGS_MAX: Final = 12
_FROM: Final = datetime(2026, 1, 1, tzinfo=UTC)
_SECONDS: Final = 3 * 365 * 24 * 3600


def samples_by_kind(seed: int) -> Iterator[tuple[str, bytes]]:
    """Yield kind and bytes of each event and of what it caused; ids, hashes and times are random,
    as in a log, and the same for a seed.
    """
    random = Random(seed)
    for carrier_id in sorted(CARRIERS):
        for path in fixture_paths(carrier_id):
            try:
                readings = read(CARRIERS[carrier_id], path.read_bytes()).readings
            except UnreadableMessageError:
                continue
            for version, reading in enumerate(readings[:_READINGS_MAX], start=1):
                event = identify(
                    reading,
                    carrier_id=carrier_id,
                    digest=lambda _: random.randbytes(32),
                    allow_unnumbered=True,
                )
                for kind, document in _entries(random, version, event):
                    yield kind, leaf(document, epoch=1).canonical


def _entries(random: Random, version: int, event: Event) -> Iterator[tuple[str, dict[str, Any]]]:
    at = _FROM + timedelta(microseconds=random.randrange(_SECONDS * 1_000_000))
    shipment: dict[str, Any] = {"shipment_id": _uuid(random), "recorded_at": at}
    source = Provenance(
        message_id=_uuid(random),
        body_commitment=random.randbytes(32),
        received_at=at - timedelta(milliseconds=random.randrange(20, 2_000)),
        normalizer=event.carrier_id,
        normalizer_version="1",
    )
    part = random.randbytes(32)
    yield (
        "event",
        event_document(
            event,
            source=source,
            version=version,
            previous_hash=random.randbytes(32),
            part_commitment=part if event.personal else None,
            signer_digest=random.randbytes(32) if event.personal.signed_by else None,
            **shipment,
        ),
    )
    if event.status is None or random.random() < 0.25:
        return
    moved: dict[str, Any] = {
        "from_status": "in_transit",
        "to_status": str(event.status),
        "sequence": version,
    }
    worker = f"worker-{random.randrange(10_000)}-{random.randbytes(4).hex()}"
    caused: dict[str, Any] = {
        "event_id": event.event_id,
        "message_id": source.message_id,
        "worker": worker,
    }
    yield "transition", transition_document(**caused, **moved, **shipment)
    subscription_id, leaf_hash = _uuid(random), random.randbytes(32)
    told = fanout_document(event=leaf_hash, subscriptions=[subscription_id], **moved, **shipment)
    yield "fanout", told
    delivered = try_document(
        number=1,
        started_at=at,
        duration_ms=random.randrange(2, 800),
        outcome="delivered",
        status_code=random.choice([200, 202, 204]),
        body_commitment=random.randbytes(32),
    )
    yield (
        "attempt",
        attempt_document(
            webhook_id=f"n1-{random.randbytes(16).hex()}",
            subscription_id=subscription_id,
            sequence=version,
            outcome="delivered",
            tries=[delivered],
            gap=None,
            covers=(),
            part_commitment=part,
            **shipment,
        ),
    )


def _uuid(random: Random) -> UUID:
    return UUID(bytes=random.randbytes(16))


def main() -> int:
    path = dictionary_path(int(sys.argv[1]))
    samples: list[bytes | bytearray | memoryview[int]] = [
        canonical for _, canonical in samples_by_kind(1)
    ]
    dictionary = zstandard.train_dictionary(_DICTIONARY_BYTES, samples, level=3)
    # "x": one that is there is never overwritten
    with path.open("xb") as file:
        file.write(dictionary.as_bytes())
    return 0


if __name__ == "__main__":
    sys.exit(main())
