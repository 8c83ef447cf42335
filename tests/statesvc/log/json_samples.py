"""JSON as tables hold it, of all carriers' fixtures: what dictionaries are trained with, and
what they are measured on.

`python -m tests.statesvc.log.json_samples NUMBER` writes the dictionary of a number that there is
none of yet. One that landed is never written again: rows that it compressed stay for years.
"""

import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from random import Random
from typing import Any, Final
from uuid import UUID

import zstandard

from events.carriers import CARRIERS
from events.entry.canonical_json import canonical_bytes
from events.entry.kinds import (
    NO_PREVIOUS,
    Provenance,
    attempt_document,
    conflict_document,
    event_document,
    fanout_document,
    observation_document,
    transition_document,
    try_document,
)
from events.errors import UnreadableMessageError
from events.event import Event
from events.identity.ids import identify
from projections.fact import decode_fact, fact_from_log
from projections.fold import fold
from statesvc.log.json_compression import dictionary_path
from tests.events.carriers.carrier_fixtures import fixture_paths, read

_DICTIONARY_BYTES: Final = 16_384
_READINGS_MAX: Final = 12
_FROM: Final = datetime(2026, 1, 1, tzinfo=UTC)
_SECONDS: Final = 3 * 365 * 24 * 3600


class JsonSamples:
    """Samples of entries, the same for a seed; their ids, hashes and times are random, as in a
    log.
    """

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def by_kind(self) -> Iterator[tuple[str, bytes]]:
        """Yield kind and bytes: of each event, of what it caused, of what is known of the shipment
        then, and of what happens seldom.
        """
        for carrier_id, events in self._events():
            facts = []
            for version, (before, event) in enumerate(pairwise([None, *events]), start=1):
                for kind, document in self._entries(carrier_id, version, before, event):
                    content = canonical_bytes(
                        {name: value for name, value in document.items() if value is not None}
                    )
                    if kind == "event":
                        facts.append(fact_from_log(decode_fact(content)))
                    yield kind, content
                yield "state", fold(facts).to_json()

    def _events(self) -> Iterator[tuple[str, list[Event]]]:
        for carrier_id in sorted(CARRIERS):
            carrier = CARRIERS[carrier_id]
            for path in fixture_paths(carrier_id):
                try:
                    readings = read(carrier, path.read_bytes()).readings[:_READINGS_MAX]
                except UnreadableMessageError:
                    continue
                yield (
                    carrier_id,
                    [
                        identify(
                            each, carrier_id=carrier_id, digest=self._digest, allow_unnumbered=True
                        )
                        for each in readings
                    ],
                )

    def _entries(
        self, carrier_id: str, version: int, before: Event | None, event: Event | None
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        assert event is not None
        random = self._random
        recorded_at = _FROM + timedelta(
            seconds=random.randrange(_SECONDS), microseconds=random.randrange(1_000_000)
        )
        received_at = recorded_at - timedelta(milliseconds=random.randrange(20, 2_000))
        source = Provenance(
            message_id=self._uuid(),
            body_commitment=random.randbytes(32),
            received_at=received_at,
            normalizer=carrier_id,
            normalizer_version=CARRIERS[carrier_id].stable,
        )
        shipment: dict[str, Any] = {"shipment_id": self._uuid(), "recorded_at": recorded_at}
        part = random.randbytes(32) if event.personal else None
        yield (
            "event",
            event_document(
                event,
                source=source,
                version=version,
                previous_hash=random.randbytes(32) if before else NO_PREVIOUS,
                part_commitment=part,
                signer_digest=random.randbytes(32) if event.personal.signed_by else None,
                **shipment,
            ),
        )
        if version % 20 == 0:
            yield (
                "conflict",
                conflict_document(
                    event,
                    source=source,
                    claimed_shipment_id=self._uuid(),
                    facts_digest=random.randbytes(33),
                    part_commitment=part,
                    **shipment,
                ),
            )
        if version % 4 == 0:
            kind = random.choice(
                ["stalled", "overdue", "not_picked_up", "delivery_missed", "pickup_expiring"]
            )
            stated = {
                "cause": "carrier",
                "hours": random.randrange(12, 240),
                "rules": random.randrange(9),
                "sequence": -999_999,
            }
            details = {**stated, "status": str(event.status or "in_transit")}
            yield (
                "observation",
                observation_document(
                    version=version, kind=kind, since=received_at, details=details, **shipment
                ),
            )
        if event.status is None or random.random() < 0.25:
            return
        sequence = {"sequence": version, **shipment}
        moved: dict[str, Any] = {
            "from_status": str(before.status if before and before.status else "unknown"),
            "to_status": str(event.status),
        }
        worker = f"worker-{random.randrange(10_000)}-{random.randbytes(4).hex()}"
        yield (
            "transition",
            transition_document(
                event_id=event.event_id,
                worker=worker,
                message_id=source.message_id,
                **moved,
                **sequence,
            ),
        )
        subscriptions = [self._uuid() for _ in range(random.choice([1, 1, 1, 2]))]
        yield (
            "fanout",
            fanout_document(
                event=random.randbytes(32), subscriptions=subscriptions, **moved, **sequence
            ),
        )
        for subscription_id in subscriptions:
            yield "attempt", self._attempt(subscription_id, **sequence)
            yield (
                "part",
                {
                    "tries": [
                        self._part(number) for number in range(1, random.choice([2, 2, 2, 2, 3]))
                    ]
                },
            )

    def _part(self, number: int) -> dict[str, Any]:
        random = self._random
        at = _FROM + timedelta(seconds=random.randrange(_SECONDS))
        kinds = [
            "application/json",
            "application/json; charset=utf-8",
            "text/plain; charset=utf-8",
            "text/html",
            "application/octet-stream",
        ]
        servers = [
            "nginx",
            "nginx/1.24.0",
            "cloudflare",
            "Apache",
            "gunicorn",
            "Python/3.12 aiohttp/3.13",
            "Kestrel",
            "envoy",
        ]
        headers = [
            ["Content-Type", random.choice(kinds)],
            ["Content-Length", str(random.choice([0, 2, 15, 120]))],
        ]
        headers += [["Date", f"{at:%a, %d %b %Y %H:%M:%S} GMT"], ["Server", random.choice(servers)]]
        response = random.choice(
            ["", "", "", "ok", "OK", '{"status":"ok"}', '{"success":true}', '{"received":true}']
        )
        return {
            "number": number,
            "body_salt": random.randbytes(32).hex(),
            "headers": headers,
            "response": response,
        }

    def _attempt(
        self, subscription_id: UUID, *, recorded_at: datetime, **sequence: Any
    ) -> dict[str, Any]:
        random = self._random
        failed = random.choice([0, 0, 0, 0, 0, 0, 0, 1, 2])
        tries = [
            try_document(
                number=number,
                started_at=recorded_at - timedelta(milliseconds=random.randrange(10, 5_000)),
                duration_ms=random.randrange(2, 800),
                outcome=random.choice(["refused", "timed_out", "unreachable"])
                if number <= failed
                else "delivered",
                status_code=random.choice([500, 502, 503, 429])
                if number <= failed
                else random.choice([200, 200, 202, 204]),
                body_commitment=random.randbytes(32),
            )
            for number in range(1, failed + 2)
        ]
        return attempt_document(
            webhook_id=f"n1-{random.randbytes(16).hex()}",
            subscription_id=subscription_id,
            outcome="delivered",
            tries=tries,
            gap=None,
            covers=(),
            recorded_at=recorded_at,
            part_commitment=random.randbytes(32),
            **sequence,
        )

    def _uuid(self) -> UUID:
        return UUID(bytes=self._random.randbytes(16))

    def _digest(self, _: bytes) -> bytes:
        return self._random.randbytes(32)


def main() -> int:
    path = dictionary_path(int(sys.argv[1]))
    samples: list[bytes | bytearray | memoryview[int]] = [
        canonical for _, canonical in JsonSamples(1).by_kind()
    ]
    dictionary = zstandard.train_dictionary(_DICTIONARY_BYTES, samples, level=3)
    # "x": one that is there is never overwritten
    with path.open("xb") as file:
        file.write(dictionary.as_bytes())
    return 0


if __name__ == "__main__":
    sys.exit(main())
