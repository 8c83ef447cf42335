"""A turn of the notifier: settle finished attempts and claim more, in one transaction.

It takes two round trips. A notification that waited behind a settled one is claimed at once. The
lease is durable when the turn is over, so every attempt is counted before it is sent.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from psycopg import AsyncConnection

from events.crypto.keyring import Keyring
from statesvc.database.pipelined import pipelined_transaction
from statesvc.database.queries import Pending
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
    """Work of a turn. `claim` None: no permit is free.

    `settled_before`: the outcome of an earlier commit of this group is unknown. `claims`: there
    may be notifications to claim; otherwise only those behind a settled notification are.
    `asks_due`: also query when the next notification becomes due.
    """

    worker: str
    ended: Sequence[AttemptResult] = ()
    settled_before: bool = False
    claim: OutboxClaim | None = None
    claims: bool = True
    asks_due: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnResult:
    """Result of a committed turn.

    `claimed` None: no claim was made. `due` None: it was not queried.
    """

    settled: Settled
    claimed: ClaimedRows | None = None
    due: NextDue | None = None


async def take_turn(connection: AsyncConnection[Any], keyring: Keyring, turn: Turn) -> TurnResult:
    """Commit the turn as a whole."""
    settled = Settled()
    pending_claim: Pending[ClaimedRows] | None = None
    pending_due: Pending[NextDue] | None = None
    # one transaction saves a commit, and what waited behind a settled notification is claimable in
    # it
    async with pipelined_transaction(connection) as pipeline:
        if turn.ended:
            settled = await settle(
                pipeline, keyring, turn.ended, worker=turn.worker, again=turn.settled_before
            )
        # after the settling: only now the notifications behind the settled ones are claimable
        if turn.claim is not None and (turn.claims or settled.has_neighbours):
            pending_claim = await send_claim(pipeline, turn.claim)
            if turn.asks_due:
                # after the claim, under the same offer: what was claimed is due only when its lease
                # ends
                pending_due = await send_next_due(pipeline, turn.claim.offer)
    return TurnResult(
        # after the COMMIT, whose answer brings these rows: asking for them inside would cost a
        # round trip
        settled=settled,
        claimed=None if pending_claim is None else await pending_claim.rows(),
        due=None if pending_due is None else await pending_due.rows(),
    )
