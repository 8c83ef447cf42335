"""`/v1/keys`: make, list and revoke API keys. Each change is an operator action."""

from datetime import datetime
from typing import Annotated, Any, Final
from uuid import UUID

from pydantic import AwareDatetime, Field
from typing_extensions import TypedDict

from statesvc.api import kit
from statesvc.api.key_words import revoked
from statesvc.http.keys.key_store import OWNER, Scope, StoredKey, create_key, list_keys
from statesvc.log.tombstones import Tombstone, TombstoneKind
from statesvc.subscriptions.key_revocation import revoke_key

_TAG: Final = "keys"
_LIST: Final = "/console/keys"
_RENAMED: Final = {"key_id": "id"}
_NAME_CHARS_MAX: Final = 200


class KeysParameters(kit.PageParameters):
    """Keys, the newest first."""

    revoked: Annotated[
        bool | None,
        Field(
            description=(
                "`false`: those that are good; `true`: those that were revoked. Left out: both."
            )
        ),
    ] = None


class KeyParameters(kit.ClosedModel):
    """A key."""

    key_id: Annotated[
        str,
        Field(
            min_length=1,
            max_length=100,
            pattern=r"^[^\x00]+$",
            description="Its id, which stands in the key itself.",
        ),
        kit.FieldFace(help="its id"),
    ]


class KeyRequest(kit.ClosedModel):
    """A key to make."""

    name: Annotated[
        str,
        Field(
            min_length=1,
            max_length=_NAME_CHARS_MAX,
            pattern=r"^[^\x00]*\S[^\x00]*$",
            description="Who uses it.",
        ),
    ]
    scopes: Annotated[
        list[Scope], Field(min_length=1, description="What it may do; `admin` is all.")
    ]
    owner: Annotated[
        str | None,
        Field(
            pattern=f"^(?:{OWNER.pattern})$",
            description=(
                "Whose subscriptions it manages; to rotate a key, the old key's owner. Null: its"
                " own id, it shares with none."
            ),
        ),
    ] = None
    expires_at: Annotated[
        AwareDatetime | None,
        Field(description="From then on it opens nothing. Null: it is good until it is revoked."),
        kit.FieldFace(metavar="T"),
    ] = None


class MadeKey(TypedDict):
    """A key that was made."""

    key_id: str
    key: Annotated[str, Field(description="The key itself: shown once, stored nowhere.")]
    name: str
    owner: str
    scopes: list[Scope]
    expires_at: datetime | None


class RevokedKey(TypedDict):
    """The revoked key, with the subscriptions that it disabled and the places of its tombstone."""

    key_id: str
    disabled_subscriptions: Annotated[
        list[UUID], Field(description="No live key of their owner covers them any more.")
    ]
    tombstones: Annotated[
        list[str],
        Field(
            description=(
                "Places outside the database that say so. Empty: none is configured, and a restore"
                " undoes it."
            )
        ),
    ]


@kit.operation(
    "GET /v1/keys",
    scope="admin",
    tag=_TAG,
    problems=(kit.Code.INVALID_CURSOR,),
    view=kit.Table(
        kit.Column("key_id", "ID"),
        "name",
        "owner",
        "scopes",
        "created_at",
        kit.Column("last_used_at", "Last used"),
        "expires_at",
        "revoked_at",
        empty="There are no keys.",
    ),
    commands=(kit.Command(name="keys list", fields=("revoked",), renamed=_RENAMED),),
    pages=(
        kit.ConsolePage(
            path=_LIST,
            title="Keys",
            menu="Keys",
            group="Operators",
            filter=("revoked",),
            preset={"revoked": "false"},
            acts=(_LIST + "/create",),
            row_acts=(_LIST + "/{key_id}/revoke",),
        ),
    ),
)
async def list_api_keys(
    context: kit.Context, call: kit.Call[KeysParameters, None]
) -> kit.Page[StoredKey]:
    """List API keys.

    With their last use, and when they expire; never the keys themselves.
    """
    wanted = call.parameters
    bound_to: dict[str, Any] = {"list": "keys", "revoked": wanted.revoked}
    after = (
        None if wanted.cursor is None else kit.decode_cursor(wanted.cursor, bound_to, fields=1)[0]
    )
    async with context.pool.connection() as connection:
        keys = await list_keys(connection)
    keys = [
        key
        for key in keys
        if wanted.revoked is None or (key.revoked_at is not None) == wanted.revoked
    ]
    start = next((place for place, key in enumerate(keys, 1) if key.key_id == after), 0)
    page = keys[start : start + wanted.limit]
    return kit.Page(
        page,
        kit.encode_cursor([page[-1].key_id], bound_to)
        if len(keys) > start + wanted.limit
        else None,
    )


@kit.operation(
    "POST /v1/keys",
    scope="admin",
    tag=_TAG,
    statuses={kit.CREATED: "made; `key` is shown once"},
    rules=("`expires_at` lies ahead.",),
    request_headers=kit.WHY_TAKEN,
    commands=(
        kit.Command(
            name="keys create",
            summary="create an API key, which is shown once",
            renamed=_RENAMED,
            view=kit.Sentences("{key}"),
        ),
    ),
    forms=(
        kit.Form(
            path=_LIST + "/create",
            title="Create a key",
            button="Create a key",
            fields=("name", "scopes", "owner", "expires_at"),
            would=kit.Sentences("The next page shows the key, once. Only its hash is stored."),
            view=(
                kit.Details("key", "key_id", "name", "owner", "scopes", "expires_at"),
                kit.Sentences(
                    "It is shown this once. Loading this page again creates another one."
                ),
            ),
            then=_LIST,
        ),
    ),
)
async def create_api_key(context: kit.Context, call: kit.Call[None, KeyRequest]) -> MadeKey:
    """Create an API key.

    Only its hash is stored. Recorded as an operator action.
    """
    wanted = call.body
    async with context.pool.connection() as connection:
        try:
            key_id, key = await create_key(
                connection,
                name=wanted.name,
                scopes=wanted.scopes,
                created_by=call.caller.actor,
                owner=wanted.owner,
                expires_at=wanted.expires_at,
                **call.why,
            )
        except ValueError as error:
            raise kit.Problem(kit.Code.INVALID_REQUEST, str(error)) from None
    return {
        "key_id": key_id,
        "key": key,
        "name": wanted.name,
        "owner": wanted.owner or key_id,
        "scopes": wanted.scopes,
        "expires_at": wanted.expires_at,
    }


@kit.operation(
    "DELETE /v1/keys/{key_id}",
    scope="admin",
    tag=_TAG,
    request_headers=kit.WHY_TAKEN,
    problems=(kit.Code.NOT_FOUND, kit.Code.CONFLICT, kit.Code.TOMBSTONE_UNAVAILABLE),
    view=kit.Sentences(revoked),
    commands=(kit.Command(name="keys revoke", renamed=_RENAMED),),
    forms=(
        kit.Form(
            path=_LIST + "/{key_id}/revoke",
            title="Revoke key {key_id}",
            button="Revoke",
            would=kit.Sentences(
                "Processes that know the key take it for up to 5 seconds more. Subscriptions that"
                " no other key of its owner covers are disabled."
            ),
            then=_LIST,
            is_drastic=True,
        ),
    ),
)
async def revoke_api_key(context: kit.Context, call: kit.Call[KeyParameters, None]) -> RevokedKey:
    """Revoke an API key.

    Processes that know it take it for up to 5 seconds more. Subscriptions that no other key of
    its owner covers are disabled. 409 if the key is revoked already; a repeated call publishes
    the tombstones that the former could not. Recorded as an operator action.
    """
    key_id = call.parameters.key_id
    async with context.pool.connection() as connection:
        disabled = await revoke_key(
            connection, key_id=key_id, revoked_by=call.caller.actor, **call.why
        )
        if disabled is None and key_id not in {
            key.key_id for key in await list_keys(connection) if key.revoked_at is not None
        }:
            raise kit.Problem(
                kit.Code.NOT_FOUND, "no key has this id: `statesvc keys list` shows them"
            )
    places = await context.publish(
        [Tombstone(kind=TombstoneKind.API_KEY, subject=key_id, details={})]
    )
    if disabled is None:
        raise kit.Problem(
            kit.Code.CONFLICT,
            "no live key has this id, it was revoked before: `statesvc keys list` shows the live"
            " ones",
        )
    return {"key_id": key_id, "disabled_subscriptions": disabled, "tombstones": places}


OPERATIONS: Final = (list_api_keys, create_api_key, revoke_api_key)
