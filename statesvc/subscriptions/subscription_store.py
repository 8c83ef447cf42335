"""Subscriptions in the database.

Each change is an operator action in the log, in the same transaction.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime, timedelta
from typing import Any, Final, Literal, NamedTuple
from uuid import UUID, uuid4

from psycopg import AsyncConnection
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from events.crypto.keyring import Keyring
from statesvc.database.queries import queries
from statesvc.delivery.outgoing import Login
from statesvc.delivery.signing import OlderSignature
from statesvc.http.keys.key_store import Scope
from statesvc.log.actions import record_action
from statesvc.log.fanouts import open_details
from statesvc.subscriptions.key_revocation import needed, require, require_of_owner
from statesvc.subscriptions.subscription_secrets import (
    KeyType,
    Secret,
    open_headers,
    open_secrets,
    rotated,
    seal_headers,
    seal_login,
    seal_secrets,
)

_SQL = queries("statesvc.subscriptions", "subscription_store")

# Columns that are named otherwise than what the API takes.
_COLUMNS: Final = {
    "coalesce": "coalesces",
    "headers": "header_names",
    "signature": "second_signature",
}

# Columns that decide content and address of notifications: changing one is as much a grant as
# making the subscription.
_WIDENING: Final = frozenset(
    {"url", "carriers", "statuses", "types", "shipments", "payload", "pii"}
)

State = Literal["active", "paused", "disabled"]
# The state; or `failing`: not disabled, and without a recent delivery.
Condition = Literal["active", "paused", "disabled", "failing"]
Switch = Literal["pause", "resume", "delete"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionContent:
    """Target of notifications, and which to send: a filter that is None takes everything."""

    url: str
    name: str | None = None
    description: str | None = None
    carriers: list[str] | None = None
    statuses: list[str] | None = None
    types: list[str] | None = None
    shipments: list[str] | None = None
    """`carrier_id/NUMBER` each, the number normalized."""
    parcels: str = "all"
    """`once`: each status of a parcel once, whichever of its sources says it first."""
    payload: str = "thin"
    pii: bool = False
    """A full payload holds personal fields."""
    key_type: KeyType = "hmac"
    rate_per_second: float | None = None
    """At most this many a second, whatever its receiver would bear."""
    coalesce: bool = True
    """True: once too many notifications wait, the latest of each shipment replaces those before
    it.
    """
    give_up_after: Mapping[str, float] = field(default_factory=dict)
    """Seconds by type: a notification that has waited longer is not tried again."""
    max_age_seconds: float | None = None
    """What had happened longer ago when it was recorded is not sent; None: everything is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionRequest(SubscriptionContent):
    """A subscription to be made."""

    login: Login | None = None
    """Login of a broker; never part of the URL."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    signature: OlderSignature | None = None
    """A second one, which the receiver checks already."""


class SharedSecretNeededError(Exception):
    """The second signature of a subscription takes a secret that is shared: no Ed25519 pair."""


class SubscriptionExistsError(Exception):
    """There is, or was, one under the id that was chosen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription(SubscriptionContent):
    """One subscription as stored, without its secrets."""

    subscription_id: UUID
    created_at: datetime
    created_by: str
    owner: str
    header_names: list[str]
    signature: dict[str, str] | None
    has_login: bool
    may_have_public_keys: bool
    """False: all signing keys are shared, so none has to be opened for display."""
    paused_at: datetime | None
    disabled_at: datetime | None
    disabled_why: str | None
    missed_since: datetime | None
    """Since then it missed notifications, and they have not been replayed."""
    failing_since: datetime | None
    """The first of `failures` attempts that failed since the last one that was delivered."""
    failures: int | None
    last_outcome: str | None
    last_status_code: int | None

    @property
    def state(self) -> State:
        """Disabled weighs more than paused."""
        return "disabled" if self.disabled_at else "paused" if self.paused_at else "active"


async def create(
    connection: AsyncConnection[Any],
    keyring: Keyring,
    request: SubscriptionRequest,
    *,
    actor: str,
    owner: str,
    why: str = "",
    chosen: tuple[UUID, Secret] | None = None,
) -> tuple[UUID, Secret]:
    """Make a subscription; its secret is readable here and never again. Raises NotGrantedError.

    `chosen`: its id and secret, where the caller brings them. Raises SubscriptionExistsError.
    """
    subscription_id, secret = chosen or (uuid4(), Secret.fresh(request.key_type))
    async with connection.transaction():
        await require_of_owner(
            connection, owner, needed(request.payload, pii=request.pii, types=request.types)
        )
        inserted = await connection.execute(
            _SQL["insert"],
            {
                "subscription_id": subscription_id,
                "created_by": actor,
                "owner": owner,
                "name": request.name,
                "description": request.description,
                "url": request.url,
                "carriers": _listed(request.carriers),
                "statuses": _listed(request.statuses),
                "types": _listed(request.types),
                "shipments": _listed(request.shipments),
                "parcels": request.parcels,
                "payload": request.payload,
                "pii": request.pii,
                "key_type": request.key_type,
                "header_names": list(request.headers),
                "sealed_headers": seal_headers(keyring, subscription_id, request.headers),
                "signature": None
                if request.signature is None
                else Jsonb(asdict(request.signature)),
                "rate_per_second": request.rate_per_second,
                "coalesce": request.coalesce,
                "give_up_after": Jsonb(dict(request.give_up_after)),
                "max_age_seconds": request.max_age_seconds,
                "sealed_secrets": seal_secrets(keyring, subscription_id, [secret]),
                "sealed_login": seal_login(keyring, subscription_id, request.login),
            },
        )
        if not inserted.rowcount:
            raise SubscriptionExistsError
        await connection.execute(_SQL["add_throttle"], {"subscription_id": subscription_id})
        details = {"host": _host(request.url), **_granted(request.payload, pii=request.pii)}
        await _record(
            connection,
            "subscription.create",
            subscription_id,
            actor=actor,
            why=why,
            details=details,
        )
    return subscription_id, secret


async def find(connection: AsyncConnection[Any], subscription_id: UUID) -> Subscription | None:
    """Return one subscription; None where there is none, or no more."""
    found = await page(connection, owner=None, subscription_id=subscription_id, after=None, limit=1)
    return next(iter(found), None)


async def matches_request(
    connection: AsyncConnection[Any],
    keyring: Keyring,
    stored: Subscription,
    wish: SubscriptionRequest,
    secret: Secret,
) -> bool:
    """Return whether the stored subscription is the one that this request would make,
    signed with this secret.
    """
    same = all(
        _comparable(getattr(stored, one.name)) == _comparable(getattr(wish, one.name))
        for one in fields(SubscriptionContent)
    )
    signature = None if wish.signature is None else asdict(wish.signature)
    others = (stored.has_login, stored.signature) == (wish.login is not None, signature)
    if not (same and others):
        return False
    row = await (
        await connection.execute(
            _SQL["lock_secrets"], {"subscription_id": stored.subscription_id}, binary=True
        )
    ).fetchone()
    if row is None or open_headers(keyring, stored.subscription_id, row[4]) != wish.headers:
        return False
    return open_secrets(keyring, stored.subscription_id, row[0])[0].key == secret.key


async def owner_of(connection: AsyncConnection[Any], subscription_id: UUID) -> str | None:
    """Return the owner; None where there is no such subscription, or no more."""
    row = await (
        await connection.execute(_SQL["owner"], {"subscription_id": subscription_id})
    ).fetchone()
    return None if row is None else row[0]


class SubscriptionPosition(NamedTuple):
    """A place in the list: after this subscription."""

    created_at: datetime
    subscription_id: UUID


async def page(
    connection: AsyncConnection[Any],
    *,
    owner: str | None,
    condition: Condition | None = None,
    subscription_id: UUID | None = None,
    after: SubscriptionPosition | None,
    limit: int,
) -> list[Subscription]:
    """Return subscriptions of an owner (None: of all) in a condition (None: in any), or this one;
    the oldest first.
    """
    created_at, last_id = after or (None, None)
    cursor = connection.cursor(row_factory=class_row(Subscription))
    wanted = {"owner": owner, "condition": condition, "subscription_id": subscription_id}
    position = {"after_created_at": created_at, "after_id": last_id, "limit": limit}
    await cursor.execute(_SQL["page"], {**wanted, **position})
    return await cursor.fetchall()


async def change(
    connection: AsyncConnection[Any],
    keyring: Keyring | None,
    subscription_id: UUID,
    changes: Mapping[str, Any],
    *,
    actor: str,
    scopes: frozenset[Scope],
    login: Login | None = None,
    why: str = "",
) -> bool:
    """Set what is in `changes`, named as in `SubscriptionRequest`, with a URL its `login`.

    False where there is no such subscription.

    `keyring` None: neither a login nor headers come with it. `scopes` of who asks for it. Raises
    NotGrantedError, and SharedSecretNeededError.
    """
    headers, signature = changes.get("headers") or {}, changes.get("signature")
    stated = {
        "header_names": list(headers),
        "second_signature": None if signature is None else asdict(signature),
        "give_up_after": changes.get("give_up_after") or {},
    }
    columns = {_COLUMNS.get(name, name): value for name, value in changes.items()}
    columns |= {name: value for name, value in stated.items() if name in columns}
    sealed = {
        "sealed_headers": None
        if keyring is None
        else seal_headers(keyring, subscription_id, headers),
        "sealed_login": None if keyring is None else seal_login(keyring, subscription_id, login),
    }
    async with connection.transaction():
        if not _WIDENING.isdisjoint(changes):
            await _may_send(connection, subscription_id, changes, scopes=scopes)
        if changes.get("signature") is not None:
            await _require_shared_secret(connection, subscription_id)
        cursor = await connection.execute(
            _SQL["change"],
            {"subscription_id": subscription_id, "columns": Jsonb(columns), **sealed},
        )
        if cursor.rowcount:
            await connection.execute(_SQL["add_throttle"], {"subscription_id": subscription_id})
            if "url" in changes:
                await connection.execute(_SQL["begin_anew"], {"subscription_id": subscription_id})
            details = {
                "changed": " ".join(sorted(changes)),
                **({"pii": changes["pii"]} if "pii" in changes else {}),
            }
            await _record(
                connection,
                "subscription.change",
                subscription_id,
                actor=actor,
                why=why,
                details=details,
            )
    return cursor.rowcount > 0


async def _may_send(
    connection: AsyncConnection[Any],
    subscription_id: UUID,
    changes: Mapping[str, Any],
    *,
    scopes: frozenset[Scope] | None,
) -> None:
    """Check that the owner, and who asks with `scopes`, may read the notifications after the
    changes.

    Raises NotGrantedError.
    """
    owner = await owner_of(connection, subscription_id)
    if owner is None:
        return
    # the keys are locked before the subscription, as a revocation does
    await require_of_owner(connection, owner, ())
    row = await (
        await connection.execute(_SQL["lock_payload"], {"subscription_id": subscription_id})
    ).fetchone()
    if row is not None:
        payload, pii, types = (
            changes.get(name, now)
            for name, now in zip(("payload", "pii", "types"), row, strict=True)
        )
        needs = needed(payload, pii=pii, types=types)
        if scopes is not None:
            require(scopes, needs, who="the key")
        await require_of_owner(connection, owner, needs)


async def _require_shared_secret(connection: AsyncConnection[Any], subscription_id: UUID) -> None:
    row = await (
        await connection.execute(
            _SQL["lock_secrets"], {"subscription_id": subscription_id}, binary=True
        )
    ).fetchone()
    if row is not None and row[2] != "hmac":
        raise SharedSecretNeededError


async def change_state(
    connection: AsyncConnection[Any],
    subscription_id: UUID,
    switch: Switch,
    *,
    actor: str,
    why: str = "",
) -> bool:
    """Pause, resume or delete. A call without effect is not recorded, so it may be repeated.

    False: there is no such subscription. Raises NotGrantedError if it may no longer send its
    content.
    """
    async with connection.transaction():
        if switch == "resume":
            await _may_send(connection, subscription_id, {}, scopes=None)
        row = await (
            await connection.execute(_SQL[switch], {"subscription_id": subscription_id})
        ).fetchone()
        if row is None:
            return False
        details: Mapping[str, Any] = {}
        changed = True
        match switch:
            case "pause":
                (changed,) = row
            case "resume":
                ended = [
                    await connection.execute(_SQL[each], {"subscription_id": subscription_id})
                    for each in ("call_again", "begin_anew")
                ]
                changed = row[0] or any(cursor.rowcount for cursor in ended)
            case "delete":
                # what waits ends with the subscription: its entry covers that
                details = open_details(*row)
                for each in ("begin_anew", "forget_tests"):
                    await connection.execute(_SQL[each], {"subscription_id": subscription_id})
        if changed:
            await _record(
                connection,
                f"subscription.{switch}",
                subscription_id,
                actor=actor,
                why=why,
                details=details,
            )
    return True


async def rotate(
    connection: AsyncConnection[Any],
    keyring: Keyring,
    subscription_id: UUID,
    *,
    grace: timedelta,
    actor: str,
    key_type: KeyType | None = None,
    why: str = "",
    chosen: Secret | None = None,
) -> Secret | None:
    """Make a new secret; the former one signs too until the grace is over.

    None where there is no such subscription.

    `key_type` None: of the kind that the subscription has. `chosen`: the new secret, where the
    caller brings it; nothing changes where it signs already. Raises SharedSecretNeededError.
    """
    async with connection.transaction():
        row = await (
            await connection.execute(
                _SQL["lock_secrets"], {"subscription_id": subscription_id}, binary=True
            )
        ).fetchone()
        if row is None:
            return None
        sealed, now, kind, has_older, _ = row
        present = open_secrets(keyring, subscription_id, sealed)
        secret = chosen or Secret.fresh(key_type or kind)
        if chosen is not None and (present[0].kind, present[0].key) == (chosen.kind, chosen.key):
            return chosen
        if has_older and secret.kind != "hmac":
            raise SharedSecretNeededError
        held = rotated(present, secret, now=now, grace=grace)
        await connection.execute(
            _SQL["set_secrets"],
            {
                "subscription_id": subscription_id,
                "key_type": secret.kind,
                "sealed_secrets": seal_secrets(keyring, subscription_id, held),
            },
        )
        details: dict[str, Any] = {"grace_seconds": int(grace.total_seconds())}
        if secret.kind != kind:
            details["key_type"] = secret.kind
        await _record(
            connection,
            "subscription.rotate_secret",
            subscription_id,
            actor=actor,
            why=why,
            details=details,
        )
    return secret


def _comparable(value: object) -> object:
    # the words of a filter are stored in their order
    return sorted(set(value)) if isinstance(value, list) else value


def _listed(words: Sequence[str] | None) -> list[str] | None:
    return None if words is None else sorted(set(words))


def _granted(payload: str, *, pii: bool) -> dict[str, Any]:
    """Return what an audit must know of a subscription besides its host: who gave personal fields
    away.
    """
    return {} if payload == "thin" else {"payload": payload, "pii": pii}


def _host(url: str) -> str:
    return url.partition("://")[2].partition("/")[0].partition("?")[0]


async def _record(
    connection: AsyncConnection[Any],
    verb: str,
    subscription_id: UUID,
    *,
    actor: str,
    why: str,
    details: Mapping[str, Any],
) -> None:
    stated = {"why": why} if why else {}
    await record_action(
        connection,
        actor=actor,
        verb=verb,
        target=f"subscription {subscription_id}",
        details={**details, **stated},
    )
