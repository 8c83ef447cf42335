"""`/v1/subscriptions`: who wants to know, for scope `subscriptions`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Protocol, TypeVar
from uuid import UUID

from aiohttp import web
from psycopg import AsyncConnection

from events.crypto.keyring import Keyring
from events.identity import normalize_number
from statesvc.api.subscriptions.models import (
    AttemptShown,
    AttemptsParameters,
    GiveUpAfter,
    RotationParameters,
    SubscriptionChange,
    SubscriptionDetail,
    SubscriptionMade,
    SubscriptionParameters,
    SubscriptionShown,
    SubscriptionWish,
    TrialShown,
    WatchedShipment,
)
from statesvc.api.subscriptions.replay_call import absent, replay_routes
from statesvc.api.subscriptions.trial import try_out
from statesvc.database.pool import Connections
from statesvc.database.wakeups.channels import OUTBOX
from statesvc.delivery.addresses import Network
from statesvc.delivery.attempt_entry import Response
from statesvc.delivery.outcome import TOTAL_SECONDS
from statesvc.delivery.outgoing import Login
from statesvc.delivery.targets import Targets
from statesvc.http.api_keys import caller_of
from statesvc.http.operation import Operation, Route, body, operation, parameters
from statesvc.http.paging import Page, PageParameters, decode_cursor, encode_cursor
from statesvc.http.problem import CREATED, NO_CONTENT, Code, Flaw, Problem
from statesvc.http.response import answer
from statesvc.http.scope import Scope
from statesvc.log.archive.log_archive import LogArchive
from statesvc.subscriptions import subscription_store as store
from statesvc.subscriptions.subscription_secrets import Secret
from statesvc.subscriptions.subscription_store import RecordedAttempt, Subscription, SubscriptionRequest, Switch, read_limiter
from statesvc.subscriptions.url import UrlRefusedError, checked_url

T = TypeVar("T")

PATH: Final = "/v1/subscriptions"
ONE: Final = PATH + "/{subscription_id}"


class Wakes(Protocol):
    """What of a waker is needed."""

    def wake(self, channel: str) -> None:
        """Wakes whoever sleeps on the channel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscriptions:
    """The handlers. `targets` are open while they serve; `allowed` are the networks that they allow."""

    pool: Connections
    keyring: Keyring
    waker: Wakes
    targets: Targets
    allowed: Sequence[Network]

    async def create(self, request: web.Request) -> web.StreamResponse:
        """Makes one; answers its secret, once."""
        asked = body(request, SubscriptionWish)
        if asked.pii:
            _may_read_personal(request)
        url, login = await self._checked_url(asked.url)
        wish = SubscriptionRequest(
            url=url,
            login=login,
            carriers=asked.carriers,
            statuses=None if asked.statuses is None else [status.value for status in asked.statuses],
            types=asked.types,
            shipments=_watched(asked.shipments),
            payload=asked.payload,
            pii=asked.pii,
            signature=asked.signature,
            rate_per_second=asked.rate_per_second,
            coalesce=asked.coalesce,
            give_up_after=_ages(asked.give_up_after_seconds),
        )
        async with self.pool.connection() as connection:
            subscription_id, secret = await store.create(connection, self.keyring, wish, actor=caller_of(request).actor)
            made = await self._shown(connection, subscription_id)
        location = {"Location": f"{PATH}/{subscription_id}"}
        return answer({**made, "secret": _told_once(secret)}, status=CREATED, headers=location)

    async def list(self, request: web.Request) -> web.StreamResponse:
        """A page, oldest first."""
        asked = parameters(request, PageParameters)
        bound_to = {"list": "subscriptions"}
        after = _position(asked.cursor, bound_to, 2, lambda created_at, last_id: (datetime.fromisoformat(created_at), UUID(last_id)))
        async with self.pool.connection() as connection:
            found = await store.page(connection, after=after, limit=asked.limit + 1)
            keys = await store.public_keys(connection, self.keyring, [one.subscription_id for one in found])
        shown, more = found[: asked.limit], len(found) > asked.limit
        cursor = encode_cursor([shown[-1].created_at.isoformat(), str(shown[-1].subscription_id)], bound_to) if more else None
        return answer({"items": [_shown(one, keys) for one in shown], "next_cursor": cursor})

    async def show(self, request: web.Request) -> web.StreamResponse:
        """One, with what its limiter knows."""
        subscription_id = _id(request)
        async with self.pool.connection() as connection:
            shown = await self._shown(connection, subscription_id)
            limiter = await read_limiter(connection, subscription_id)
        return answer({**shown, "limiter": asdict(limiter)})

    async def change(self, request: web.Request) -> web.StreamResponse:
        """Sets the members that the body has; the rest stays."""
        subscription_id, asked = _id(request), body(request, SubscriptionChange)
        changes: dict[str, Any] = asked.model_dump(mode="json", include=asked.model_fields_set - {"shipments", "give_up_after_seconds"})
        if "shipments" in asked.model_fields_set:
            changes["shipments"] = _watched(asked.shipments)
        if "give_up_after_seconds" in asked.model_fields_set:
            changes["give_up_after"] = _ages(asked.give_up_after_seconds)
        # where personal fields go is as much a grant as that they go
        if asked.pii or (not changes.keys().isdisjoint({"url", "payload"}) and (await self._find(subscription_id)).pii):
            _may_read_personal(request)
        login = None
        if "url" in changes:
            changes["url"], login = await self._checked_url(asked.url)
        async with self.pool.connection() as connection:
            if changes:
                await store.change(connection, self.keyring, subscription_id, changes, actor=caller_of(request).actor, login=login)
            return answer(await self._shown(connection, subscription_id))

    async def delete(self, request: web.Request) -> web.StreamResponse:
        """Ends it. What still waits for it is forgotten."""
        await self._turn(request, "delete")
        return web.Response(status=NO_CONTENT)

    async def pause(self, request: web.Request) -> web.StreamResponse:
        """Sends nothing until `resume`; notifications collect."""
        subscription_id = await self._turn(request, "pause")
        async with self.pool.connection() as connection:
            return answer(await self._shown(connection, subscription_id))

    async def resume(self, request: web.Request) -> web.StreamResponse:
        """Sends again, what collected first."""
        subscription_id = await self._turn(request, "resume")
        self.waker.wake(OUTBOX)
        async with self.pool.connection() as connection:
            return answer(await self._shown(connection, subscription_id))

    async def rotate_secret(self, request: web.Request) -> web.StreamResponse:
        """A new secret; the former one signs beside it until the grace is over."""
        asked = parameters(request, RotationParameters)
        grace = timedelta(hours=asked.grace_hours)
        async with self.pool.connection() as connection:
            secret = await store.rotate(
                connection,
                self.keyring,
                asked.subscription_id,
                grace=grace,
                actor=caller_of(request).actor,
                signature=asked.signature,
            )
            if secret is None:
                raise absent(asked.subscription_id)
            shown = await self._shown(connection, asked.subscription_id)
        return answer({**shown, "secret": _told_once(secret)})

    async def test(self, request: web.Request) -> web.StreamResponse:
        """Sends one `subscription.test`, also while paused or disabled."""
        subscription_id = _id(request)
        async with self.pool.connection() as connection:
            means = await store.signing_means(connection, self.keyring, subscription_id)
        if means is None:
            raise absent(subscription_id)
        destination, keys = means
        webhook_id, came = await try_out(
            self.targets, subscription_id=subscription_id, destination=destination, keys=keys, now=datetime.now(UTC)
        )
        return answer(
            {
                "webhook_id": webhook_id,
                "outcome": came.outcome,
                "status_code": came.status_code,
                "duration_ms": round(came.duration_seconds * 1000),
                "detail": came.detail or None,
            }
        )

    async def attempts(self, request: web.Request) -> web.StreamResponse:
        """A page of what was tried, newest first."""
        asked = parameters(request, AttemptsParameters)
        bound_to = {"list": "attempts", "of": str(asked.subscription_id)}
        before = _position(
            asked.cursor, bound_to, 3, lambda at, batch_id, ordinal: (datetime.fromisoformat(at), int(batch_id), int(ordinal))
        )
        if asked.responses:
            _may_read_personal(request)
        await self._find(asked.subscription_id)
        async with self.pool.connection() as connection:
            found = await store.attempts(connection, asked.subscription_id, before=before, limit=asked.limit + 1)
            if asked.responses and found:
                await store.record_responses_read(connection, asked.subscription_id, actor=caller_of(request).actor)
        shown, more = found[: asked.limit], len(found) > asked.limit
        cursor = encode_cursor([shown[-1].recorded_at.isoformat(), shown[-1].batch_id, shown[-1].ordinal], bound_to) if more else None
        items = [_attempt(one, one.response(self.keyring) if asked.responses else None) for one in shown]
        return answer({"items": items, "next_cursor": cursor})

    async def _checked_url(self, text: str) -> tuple[str, Login | None]:
        try:
            return await checked_url(text, self.allowed)
        except UrlRefusedError as error:
            raise Problem(Code.INVALID_REQUEST, "the body breaks the contract", flaws=[Flaw("/body/url", str(error))]) from None

    async def _shown(self, connection: AsyncConnection[Any], subscription_id: UUID) -> dict[str, Any]:
        found = _there(await store.find(connection, subscription_id), subscription_id)
        return _shown(found, await store.public_keys(connection, self.keyring, [subscription_id]))

    async def _find(self, subscription_id: UUID) -> Subscription:
        async with self.pool.connection() as connection:
            return _there(await store.find(connection, subscription_id), subscription_id)

    async def _turn(self, request: web.Request, switch: Switch) -> UUID:
        subscription_id = _id(request)
        async with self.pool.connection() as connection:
            if not await store.turn(connection, subscription_id, switch, actor=caller_of(request).actor):
                raise absent(subscription_id)
        return subscription_id


def _position(cursor: str | None, bound_to: Mapping[str, Any], fields: int, read: Callable[..., T]) -> T | None:
    """Where the page before ended; None for the first page. A forged position is refused like a foreign one."""
    if cursor is None:
        return None
    position = decode_cursor(cursor, bound_to, fields=fields)
    try:
        return read(*position)
    except (TypeError, ValueError):
        raise Problem(Code.INVALID_CURSOR, "send `next_cursor` as it was given") from None


def _id(request: web.Request) -> UUID:
    return parameters(request, SubscriptionParameters).subscription_id


def _there(found: Subscription | None, subscription_id: UUID) -> Subscription:
    if found is None:
        raise absent(subscription_id)
    return found


def _attempt(one: RecordedAttempt, response: Response | None) -> dict[str, Any]:
    stored = {
        **asdict(one),
        "response": None if response is None else response.text,
        "response_headers": None if response is None else response.headers,
    }
    return {name: stored[name] for name in AttemptShown.model_fields}


def _watched(shipments: Sequence[WatchedShipment] | None) -> list[str] | None:
    if shipments is None:
        return None
    return [f"{one.carrier_id}/{normalize_number(one.tracking_number)}" for one in shipments]


def _ages(asked: GiveUpAfter) -> dict[str, float]:
    return asked.model_dump(by_alias=True, exclude_none=True)


def _told_once(secret: Secret) -> str | None:
    return secret.shown if secret.kind == "hmac" else None


def _may_read_personal(request: web.Request) -> None:
    if not caller_of(request).has(Scope.PII):
        raise Problem(Code.MISSING_SCOPE, "personal fields in notifications take a key with the scope pii")


def _shown(one: Subscription, public_keys: Mapping[UUID, list[str]]) -> dict[str, Any]:
    failing = None
    if one.failing_since is not None:
        failing = {
            "since": one.failing_since,
            "failures": one.failures,
            "last_outcome": one.last_outcome,
            "last_status_code": one.last_status_code,
        }
    stored = {**asdict(one), "id": one.subscription_id, "state": one.state, "failing": failing}
    stored["public_keys"] = public_keys.get(one.subscription_id, [])
    stored["give_up_after_seconds"] = GiveUpAfter.model_validate(one.give_up_after).model_dump(by_alias=True)
    if one.shipments is not None:
        split = [watched.partition("/") for watched in one.shipments]
        stored["shipments"] = [{"carrier_id": carrier_id, "tracking_number": number} for carrier_id, _, number in split]
    return {name: stored[name] for name in SubscriptionShown.model_fields}


def _operation(summary: str, **rest: Any) -> Operation:  # noqa: ANN401 - the fields of an operation
    return operation(**{"summary": summary, "scope": "subscriptions", "tag": "subscriptions", "parameters": SubscriptionParameters, **rest})


def routes(
    *, pool: Connections, keyring: Keyring, waker: Wakes, targets: Targets, allowed: Sequence[Network], archive: LogArchive
) -> Sequence[Route]:
    """The calls about subscriptions, for the role `api`. The caller opens and closes the targets."""
    calls = Subscriptions(pool=pool, keyring=keyring, waker=waker, targets=targets, allowed=allowed)
    gone = {"problems": (Code.NOT_FOUND,)}
    shown = {"response": SubscriptionShown, **gone}
    made = {"response": SubscriptionMade}
    return [
        *replay_routes(pool, waker, archive),
        Route(
            "POST",
            PATH,
            calls.create,
            _operation("Subscribe", parameters=None, request=SubscriptionWish, statuses={CREATED: "made; `secret` is shown once"}, **made),
        ),
        Route(
            "GET",
            PATH,
            calls.list,
            _operation("List subscriptions", parameters=PageParameters, response=Page[SubscriptionShown], problems=(Code.INVALID_CURSOR,)),
        ),
        Route("GET", ONE, calls.show, _operation("Show a subscription", response=SubscriptionDetail, **gone)),
        Route("PATCH", ONE, calls.change, _operation("Change a subscription", request=SubscriptionChange, **shown)),
        Route("DELETE", ONE, calls.delete, _operation("Unsubscribe", statuses={NO_CONTENT: "ended"}, **gone)),
        Route("POST", ONE + "/pause", calls.pause, _operation("Send nothing for now", **shown)),
        Route("POST", ONE + "/resume", calls.resume, _operation("Send again", **shown)),
        Route(
            "POST",
            ONE + "/rotate-secret",
            calls.rotate_secret,
            _operation("Make a new secret", parameters=RotationParameters, **made, **gone),
        ),
        Route(
            "POST",
            ONE + "/test",
            calls.test,
            _operation("Send a test once", response=TrialShown, deadline_seconds=TOTAL_SECONDS + 5, **gone),
        ),
        Route(
            "GET",
            ONE + "/attempts",
            calls.attempts,
            _operation(
                "List attempts", parameters=AttemptsParameters, response=Page[AttemptShown], problems=(Code.NOT_FOUND, Code.INVALID_CURSOR)
            ),
        ),
    ]
