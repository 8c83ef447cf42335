"""Rights of an owner's keys over its subscriptions, and the end of a key.

A subscription sends only events that the live keys of its owner may read: `subscriptions` for any,
`read` for full payloads, `pii` for personal fields, `ops` for incidents. That is checked when it is
made, widened or resumed. Revoking a key disables the subscriptions that the remaining keys do not
cover in the same transaction, so they send nothing from the next claim on. A key that is replaced
before it is revoked changes nothing. Lock order: ARCHITECTURE.md.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from psycopg import AsyncConnection

from events.entry.kinds import rfc3339
from projections.notification_type import is_of_operator
from statesvc.background.periodic import Periodic
from statesvc.database.pool import Connections
from statesvc.database.queries import queries
from statesvc.health.notices import Notice, NoticeKind, write_notices
from statesvc.http.keys.api_keys import BOOTSTRAP
from statesvc.http.keys.key_store import Scope, granted
from statesvc.log.actions import Action, record_actions
from statesvc.log.fanouts import open_details

_SQL = queries("statesvc.subscriptions", "key_revocation")
# Actor that revokes expired keys.
EXPIRY: Final = "expiry"
_EXPIRY_SECONDS: Final = 900.0
_EXPIRY_RETRY_SECONDS: Final = 30.0
WHY: Final = "its owner has no live key any more with all the scopes that it needs"
_WHAT_TO_DO: Final = (
    "Give the owner a key (statesvc keys create --owner ...), or narrow the subscription; then POST"
    " .../resume, and POST .../replay with since = missed_since sends what was missed."
)


class NotGrantedError(RuntimeError):
    """A subscription would send more than its owner, or the caller, may read.

    `scope` is missing.
    """

    def __init__(self, scope: Scope, who: str) -> None:
        super().__init__(f"{_REASONS[scope]}; {who} lacks it")
        self.scope = scope


_REASONS: Final = {
    Scope.SUBSCRIPTIONS: "a subscription takes a key with the scope subscriptions",
    Scope.READ: "a full payload takes a key with the scope read",
    Scope.PII: "personal fields in notifications take a key with the scope pii",
    Scope.OPS: "notifications for operators take a key with the scope ops",
}


def needed(payload: str, *, pii: bool, types: Iterable[str] | None) -> list[Scope]:
    return [
        Scope.SUBSCRIPTIONS,
        *([Scope.READ] if payload == "full" else []),
        *([Scope.PII] if pii else []),
        *([Scope.OPS] if any(map(is_of_operator, types or ())) else []),
    ]


def require(held: Iterable[Scope], needs: Iterable[Scope], *, who: str) -> None:
    for scope in needs:
        if scope not in held:
            raise NotGrantedError(scope, who)


async def require_of_owner(
    connection: AsyncConnection[Any], owner: str, needs: Iterable[Scope]
) -> None:
    """Check that the owner's live keys cover the needs; until the transaction ends none of them is
    revoked. Raises NotGrantedError.
    """
    if owner == BOOTSTRAP:
        return
    # a shared lock: the keys that this decision rests on stay until it is committed
    rows = await (await connection.execute(_SQL["share_grants"], {"owner": owner})).fetchall()
    held = granted(frozenset(scope for (scopes,) in rows for scope in Scope if scope in scopes))
    require(held, needs, who="every live key of the subscription's owner")


async def revoke_key(
    connection: AsyncConnection[Any], *, key_id: str, revoked_by: str, why: str = ""
) -> list[UUID] | None:
    """End a key (within 5 seconds in every process), and the subscriptions that lived by it; None
    where it is unknown or ended already.
    """
    async with connection.transaction():
        # all keys of the owner, before the subscriptions: two revocations must not each count on
        # the other's key
        await connection.execute(_SQL["lock_keys"], {"key_id": key_id})
        row = await (await connection.execute(_SQL["revoke"], {"key_id": key_id})).fetchone()
        if row is None:
            return None
        name, owner, now = row
        actions = [
            Action(
                actor=revoked_by,
                verb="key.revoke",
                target=f"key:{key_id}",
                details={"name": name, "owner": owner, **({"why": why} if why else {})},
            )
        ]
        # in the transaction that ends the key: no claim sees the key gone and the subscription
        # alive
        cursor = await connection.execute(
            _SQL["disable_uncovered"], {"owner": owner, "now": now, "why": WHY}
        )
        disabled = [_disabled(*found, actor=revoked_by) for found in await cursor.fetchall()]
        await record_actions(connection, actions + [action for _, action, _ in disabled])
        await write_notices(connection, [notice for *_, notice in disabled], now=now)
    return [subscription_id for subscription_id, *_ in disabled]


async def revoke_expired(connection: AsyncConnection[Any]) -> list[str]:
    """End expired keys, with the subscriptions that depended on them; return their ids."""
    expired = [key_id for (key_id,) in await (await connection.execute(_SQL["expired"])).fetchall()]
    return [
        key_id
        for key_id in expired
        # one transaction each: two processes may do this at once, and one of them finds it done
        if await revoke_key(connection, key_id=key_id, revoked_by=EXPIRY) is not None
    ]


def key_expiry(pool: Connections) -> Periodic:
    """Return a job that looks for them at the start and then some times an hour."""

    async def work() -> None:
        async with pool.connection() as connection:
            await revoke_expired(connection)

    return Periodic(
        "key expiry",
        work,
        every_seconds=_EXPIRY_SECONDS,
        retry_seconds=_EXPIRY_RETRY_SECONDS,
        jitter=0.1,
    )


def _disabled(
    subscription_id: UUID,
    needs: list[str],
    missed_since: datetime,
    *waiting: Any,  # noqa: ANN401 - columns of a row
    actor: str,
) -> tuple[UUID, Action, Notice]:
    target = f"subscription {subscription_id}"
    details = {"why": WHY, "needs": " ".join(needs), "missed_since": rfc3339(missed_since)}
    action = Action(
        actor=actor,
        verb="subscription.disable",
        target=target,
        details={**details, **open_details(*waiting)},
    )
    return (
        subscription_id,
        action,
        Notice(
            kind=NoticeKind.DISABLED, target=target, details={**details, "what_to_do": _WHAT_TO_DO}
        ),
    )
