"""Model of the inbox, and of whom a claim may take of it. Times are seconds since the start."""

from collections import Counter
from dataclasses import dataclass
from uuid import UUID

LEASE_SECONDS = 30
NOBODY = UUID(int=2**128 - 1)
"""Stands for the token of a message that is parked: nobody knows it."""
DEATHS_MAX = 5
CARRIERS = ("a", "b", "c")


@dataclass
class Waiting:
    """One message of the inbox; times in seconds since the start."""

    carrier_id: str
    available_at: int
    token: UUID | None = None
    attempts: int = 0
    retries: int = 0
    stage: str = "raw"

    @property
    def leased(self) -> bool:
        return self.token not in {None, NOBODY}

    def give_back(self, available_at: int) -> None:
        """Give it back into its lane, or parked: one that ever cost a worker its life is
        claimed alone from then on.
        """
        self.token = NOBODY if self.attempts - 1 - self.retries > 0 else None
        self.available_at = available_at


class Inbox:
    """Asked by the state machine, which changes it beside the database."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0
        self.waiting: dict[UUID, Waiting] = {}
        self.receipts: dict[bytes, UUID] = {}
        self.buried: dict[UUID, str] = {}
        self.settled: set[UUID] = set()
        self.tokens: list[UUID] = []
        self.held: set[str] = set()
        self.weights = dict.fromkeys(CARRIERS, 1.0)
        self.bounds: dict[str, int | None] = dict.fromkeys(CARRIERS)
        self.attempts: Counter[tuple[UUID, int, str]] = Counter()

    def share(self, carrier_id: str, limit: int) -> int:
        """Return the share by weight; where weights differ the turns may be cut one early,
        for everybody gets one.
        """
        share = int(limit * self.weights[carrier_id] / sum(self.weights.values()))
        return share if len(set(self.weights.values())) == 1 else share - 1

    def within_bound(self, carrier_id: str, message_ids: list[UUID]) -> int:
        bound = self.bounds[carrier_id]
        return (
            len(message_ids)
            if bound is None
            else max(0, min(len(message_ids), bound - self.in_flight(carrier_id)))
        )

    def in_flight(self, carrier_id: str) -> int:
        return sum(
            message.leased for message in self.waiting.values() if message.carrier_id == carrier_id
        )

    def ended(self) -> list[UUID]:
        """Return leases that ended and what is parked, as far as it may be claimed now.

        A lease that is taken over adds none in flight.
        """
        return [
            m
            for m, message in self.waiting.items()
            if message.token
            and message.available_at <= self.now
            and message.carrier_id not in self.held
            and (message.leased or self.within_bound(message.carrier_id, [m]))
        ]

    def ready(self, carrier_id: str) -> list[UUID]:
        return [
            m
            for m, message in self.waiting.items()
            if message.carrier_id == carrier_id
            and not message.token
            and message.available_at <= self.now
            and message.carrier_id not in self.held
        ]

    def lease(self, token: UUID) -> list[UUID]:
        return [m for m, message in self.waiting.items() if message.token == token]

    def token(self, place: int) -> UUID:
        """Return a token that was given out; lost ones too."""
        return self.tokens[place % len(self.tokens)] if self.tokens else UUID(int=0)

    def chosen(self, token: UUID, mask: int) -> list[UUID]:
        """Return some of the token's messages, and some of others."""
        return [
            m
            for m in sorted(self.waiting)
            if (mask >> m.int % 12) & 1 and (mask & 1 or self.waiting[m].token == token)
        ]
