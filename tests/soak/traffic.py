"""Pushes of carriers in a story, and what each body must come to: the events that it
tells, or a dead letter.

The sample carriers' lives (histories that grow, scans that overtake each other, bodies sent twice,
bodies cut off), and every fifth push one canonical event, whose id is stated in the body and owes
nothing to our own normalizers.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count

from events.carriers import CARRIERS
from events.errors import UnreadableMessageError
from events.identity.ids import identify
from statesvc.addons.demo.traffic import pushes
from tests.acceptance.stories import canonical_story

Digest = Callable[[bytes], bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """One body. `event_ids` is None for a body that nobody can read."""

    carrier_id: str
    body: bytes
    event_ids: tuple[str, ...] | None


def traffic(seed: int, digests: Callable[[str], Digest]) -> Iterator[Told]:
    """Yield endless traffic.

    `digests` are the installation's own, by carrier: ids of scans without a code depend on them.
    """
    rng = random.Random(seed)
    lives = pushes(rng, lambda: datetime.now(UTC))
    stated = _stated(rng, seed)
    for place in count():
        if place % 5 == 4:
            yield next(stated)
        else:
            push = next(lives)
            yield Told(
                carrier_id=push.carrier_id,
                body=push.body,
                event_ids=_read(push.carrier_id, push.body, digests),
            )


def _stated(rng: random.Random, seed: int) -> Iterator[Told]:
    for parcel in count():
        number = f"CN{seed:03d}{parcel:08d}"
        for place, message in enumerate(canonical_story(number, rng), start=1):
            yield Told(
                carrier_id=message.carrier_id, body=message.body, event_ids=(f"{number}-{place}",)
            )


def _read(carrier_id: str, body: bytes, digests: Callable[[str], Digest]) -> tuple[str, ...] | None:
    carrier = CARRIERS[carrier_id]
    try:
        normalized = carrier.normalizers[carrier.stable](body, datetime.now(UTC))
    except UnreadableMessageError:
        return None
    return tuple(
        identify(reading, carrier_id=carrier_id, digest=digests(carrier_id)).event_id
        for reading in normalized.readings
    )
