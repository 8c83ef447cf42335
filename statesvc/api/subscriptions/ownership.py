"""Visibility of subscriptions, and the scopes that a caller needs to change them.

A subscription belongs to the owner of the key that made it. Keys of other owners get the answer of
an unknown id. A key with scope `ops` sees all.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from psycopg import AsyncConnection

from statesvc.http.call import Call
from statesvc.http.keys.key_store import Scope
from statesvc.http.problem import Code, Problem
from statesvc.subscriptions.key_revocation import NotGrantedError, require
from statesvc.subscriptions.subscription_store import SharedSecretNeededError, owner_of


def absent(subscription_id: UUID) -> Problem:
    """Return the problem of an unknown or deleted subscription, or another owner's."""
    return Problem(Code.NOT_FOUND, f"there is no subscription {subscription_id}")


def owner_seen_by(call: Call[Any, Any]) -> str | None:
    """Return the owner to filter by; None: all owners."""
    return None if call.caller.has(Scope.OPS) else call.caller.owner


async def require_visible(
    connection: AsyncConnection[Any], call: Call[Any, Any], subscription_id: UUID
) -> None:
    """Refuse another owner's subscription as absent.

    Owners never change, so later steps may rely on it.
    """
    owner, seen = await owner_of(connection, subscription_id), owner_seen_by(call)
    # one answer for both, so that ids cannot be probed
    if owner is None or (seen is not None and owner != seen):
        raise absent(subscription_id)


def require_scopes(call: Call[Any, Any], needs: Iterable[Scope]) -> None:
    """Raise the problem of a missing scope."""
    with grants_checked():
        require(call.caller.scopes, needs, who=f"key {call.caller.key_id}")


@contextmanager
def grants_checked() -> Iterator[None]:
    """Turn missing grants and unusable signatures into problems."""
    try:
        yield
    except SharedSecretNeededError:
        said = (
            "its second signature takes a secret that is shared, not an Ed25519 pair: take the"
            " `signature` away first"
        )
        raise Problem(Code.CONFLICT, said) from None
    except NotGrantedError as error:
        raise Problem(
            Code.MISSING_SCOPE, str(error), members={"required_scope": error.scope.value}
        ) from error
