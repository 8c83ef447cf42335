"""A turn of the notifier: what has ended is settled, and more is claimed where there may be more, in one transaction and two round trips.

A notification that waited behind one of the settled ones is claimed at once. The lease is durable when the turn is over, so nothing is sent
whose attempt was not counted.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from psycopg import AsyncConnection

from events.crypto.keyring import Keyring
from statesvc.database.pending import Pending
from statesvc.database.pipelined import pipelined_transaction
from statesvc.notifier.attempts import AttemptResult
from statesvc.notifier.claim_outbox import (
    ClaimedRows,
    NextDue,
    OutboxClaim,
    send_claim,
    send_next_due,
)
from statesvc.notifier.settle import Settled, settle


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """Work of a turn. `settled_before`: the outcome of an earlier commit of this group is unknown. `claim` None: nothing more may be sent.

    `claims`: there may be something to claim; otherwise only what waits behind a settled one is. `asks_due`: also when something that
    waits for its time may be claimed.
    """

    worker: str
    ended: Sequence[AttemptResult] = ()
    settled_before: bool = False
    claim: OutboxClaim | None = None
    claims: bool = True
    asks_due: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnResult:
    """Result of a turn, committed. `claimed` None: nothing was claimed for. `due` None: it was not asked for."""

    settled: Settled
    claimed: ClaimedRows | None = None
    due: NextDue | None = None


async def take_turn(connection: AsyncConnection[Any], keyring: Keyring, turn: Turn) -> TurnResult:
    """Commit the turn, all or nothing."""
    settled = Settled()
    asked_claim: Pending[ClaimedRows] | None = None
    asked_due: Pending[NextDue] | None = None
    async with pipelined_transaction(connection) as pipeline:
        if turn.ended:
            settled = await settle(
                pipeline, keyring, turn.ended, worker=turn.worker, again=turn.settled_before
            )
        if turn.claim is not None and (turn.claims or settled.has_neighbours):
            asked_claim = await send_claim(pipeline, turn.claim)
            if turn.asks_due:
                asked_due = await send_next_due(pipeline, turn.claim.offer)
    return TurnResult(
        settled=settled,
        claimed=None if asked_claim is None else await asked_claim.rows(),
        due=None if asked_due is None else await asked_due.rows(),
    )
