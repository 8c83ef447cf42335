"""`/v1/subscriptions`: who wants to know, for scope `subscriptions`. Each key sees those of its owner; one with scope `ops` all."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar
from uuid import UUID

from aiohttp import web

from events.crypto.keyring import Keyring
from statesvc.api.personal_reads import PersonalReadings
from statesvc.api.subscriptions.chosen_secrets import ChosenSubscriptions
from statesvc.api.subscriptions.models import (
    URL_RULE,
    AttemptShown,
    AttemptsParameters,
    RotationParameters,
    SubscriptionChange,
    SubscriptionDetail,
    SubscriptionListParameters,
    SubscriptionMade,
    SubscriptionParameters,
    SubscriptionShown,
    SubscriptionWish,
    TestRequest,
    TrialShown,
)
from statesvc.api.subscriptions.ownership import absent, grants_checked, owner_seen_by, require_scopes, require_visible
from statesvc.api.subscriptions.portal_links import PortalLinks
from statesvc.api.subscriptions.replay_call import replay_routes
from statesvc.api.subscriptions.shown import attempt_shown, read_shown, subscription_shown
from statesvc.api.subscriptions.wishes import ages, checked_address, requested, watched
from statesvc.database.pool import Connections
from statesvc.database.wakeups.channels import OUTBOX
from statesvc.database.wakeups.waker import Wakes
from statesvc.delivery.addresses import Network
from statesvc.delivery.outcome import TOTAL_SECONDS
from statesvc.delivery.targets import Targets
from statesvc.http.api_keys import caller_of
from statesvc.http.key_store import Scope
from statesvc.http.operation import WHY_TAKEN, Handler, Reply, Route, answer, body, call_of, parameters, raw_route, why_of
from statesvc.http.paging import Page, decode_cursor, encode_cursor
from statesvc.http.problem import CREATED, NO_CONTENT, Code, Problem
from statesvc.log.archive.log_archive import LogArchive
from statesvc.subscriptions import subscription_store as store
from statesvc.subscriptions.key_revocation import needed
from statesvc.subscriptions.recorded_attempts import read_attempts, read_limiter
from statesvc.subscriptions.subscription_secrets import Secret
from statesvc.subscriptions.subscription_store import Switch
from statesvc.subscriptions.test_delivery import record_test, send_test

T = TypeVar("T")

PATH: Final = "/v1/subscriptions"
ONE: Final = PATH + "/{subscription_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionCalls:
    """The handlers. `targets` are open while they serve; `allowed` are the networks that they allow."""

    pool: Connections
    keyring: Keyring
    waker: Wakes
    targets: Targets
    allowed: Sequence[Network]
    readings: PersonalReadings

    async def create(self, request: web.Request) -> Reply[SubscriptionMade]:
        """Makes one; answers its secret, once."""
        asked = body(request, SubscriptionWish)
        require_scopes(request, needed(asked.payload, pii=asked.pii))
        wish = await requested(asked, self.allowed)
        caller = caller_of(request)
        async with self.pool.connection() as connection:
            with grants_checked():
                subscription_id, secret = await store.create(
                    connection, self.keyring, wish, actor=caller.actor, owner=caller.owner, chosen=None, **why_of(request)
                )
            made = await read_shown(connection, self.keyring, subscription_id)
        location = {"Location": f"{PATH}/{subscription_id}"}
        return answer({**made, "secret": _shown_once(secret)}, status=CREATED, headers=location)

    async def list(self, request: web.Request) -> Reply[Page[SubscriptionShown]]:
        """A page, oldest first."""
        asked = parameters(request, SubscriptionListParameters)
        bound_to = {"list": "subscriptions", "state": asked.state}
        after = _position(asked.cursor, bound_to, 2, lambda created_at, last_id: (datetime.fromisoformat(created_at), UUID(last_id)))
        async with self.pool.connection() as connection:
            found = await store.page(connection, owner=owner_seen_by(request), condition=asked.state, after=after, limit=asked.limit + 1)
            keys = await store.public_keys(connection, self.keyring, [one.subscription_id for one in found])
        shown, more = found[: asked.limit], len(found) > asked.limit
        cursor = encode_cursor([shown[-1].created_at.isoformat(), str(shown[-1].subscription_id)], bound_to) if more else None
        return answer(Page([subscription_shown(one, keys) for one in shown], cursor))

    async def show(self, request: web.Request) -> Reply[SubscriptionDetail]:
        """One, with what its limiter knows."""
        subscription_id = _id(request)
        async with self.pool.connection() as connection:
            await require_visible(connection, request, subscription_id)
            shown = await read_shown(connection, self.keyring, subscription_id)
            limiter = await read_limiter(connection, subscription_id)
        return answer({**shown, "limiter": limiter})

    async def change(self, request: web.Request) -> Reply[SubscriptionShown]:
        """Sets the members that the body has; the rest stays."""
        subscription_id, asked = _id(request), body(request, SubscriptionChange)
        async with self.pool.connection() as connection:
            await require_visible(connection, request, subscription_id)
        changes: dict[str, Any] = asked.model_dump(mode="json", include=asked.model_fields_set - {"shipments", "give_up_after_seconds"})
        if "shipments" in asked.model_fields_set:
            changes["shipments"] = watched(asked.shipments)
        if "give_up_after_seconds" in asked.model_fields_set:
            changes["give_up_after"] = ages(asked.give_up_after_seconds)
        if asked.pii:
            require_scopes(request, [Scope.PII])
        login = None
        if "url" in changes:
            changes["url"], login = await checked_address(asked.url, self.allowed)
        caller = caller_of(request)
        async with self.pool.connection() as connection:
            if changes:
                with grants_checked():
                    await store.change(
                        connection,
                        self.keyring,
                        subscription_id,
                        changes,
                        actor=caller.actor,
                        scopes=caller.scopes,
                        login=login,
                        **why_of(request),
                    )
            return answer(await read_shown(connection, self.keyring, subscription_id))

    async def delete(self, request: web.Request) -> web.StreamResponse:
        """Ends it. What still waits for it is dropped."""
        await self._switch(request, "delete")
        return web.Response(status=NO_CONTENT)

    async def pause(self, request: web.Request) -> Reply[SubscriptionShown]:
        """Sends nothing until `resume`; notifications collect."""
        subscription_id = await self._switch(request, "pause")
        async with self.pool.connection() as connection:
            return answer(await read_shown(connection, self.keyring, subscription_id))

    async def resume(self, request: web.Request) -> Reply[SubscriptionShown]:
        """Sends again, what collected first."""
        subscription_id = await self._switch(request, "resume")
        self.waker.wake(OUTBOX)
        async with self.pool.connection() as connection:
            return answer(await read_shown(connection, self.keyring, subscription_id))

    async def rotate_secret(self, request: web.Request) -> Reply[SubscriptionMade]:
        """A new secret; the former one signs too until the grace is over."""
        asked = parameters(request, RotationParameters)
        grace = timedelta(hours=asked.grace_hours)
        async with self.pool.connection() as connection:
            await require_visible(connection, request, asked.subscription_id)
            secret = await store.rotate(
                connection,
                self.keyring,
                asked.subscription_id,
                grace=grace,
                actor=caller_of(request).actor,
                signature=asked.signature,
                chosen=None,
                **why_of(request),
            )
            if secret is None:
                raise absent(asked.subscription_id)
            shown = await read_shown(connection, self.keyring, asked.subscription_id)
        return answer({**shown, "secret": _shown_once(secret)})

    async def test(self, request: web.Request) -> Reply[TrialShown]:
        """Sends one, also while paused or disabled."""
        subscription_id, asked, why = _id(request), body(request, TestRequest), why_of(request)
        async with self.pool.connection() as connection:
            await require_visible(connection, request, subscription_id)
            means = await store.signing_means(connection, self.keyring, subscription_id)
        if means is None:
            raise absent(subscription_id)
        sent = await send_test(self.targets, subscription_id, means, kind=asked.type)
        async with self.pool.connection() as connection:
            await record_test(connection, subscription_id, sent, actor=caller_of(request).actor, **why)
        came = sent.answer
        return answer(
            {
                "webhook_id": sent.webhook_id,
                "type": sent.type,
                "outcome": came.outcome,
                "status_code": came.status_code,
                "duration_ms": round(came.duration_seconds * 1000),
                "detail": came.detail or None,
            }
        )

    async def attempts(self, request: web.Request) -> Reply[Page[AttemptShown]]:
        """A page of what was tried, newest first."""
        asked = parameters(request, AttemptsParameters)
        bound_to = {"list": "attempts", "of": str(asked.subscription_id)}
        before = _position(
            asked.cursor, bound_to, 3, lambda at, webhook_id, number: (datetime.fromisoformat(at), str(webhook_id), int(number))
        )
        if asked.responses:
            require_scopes(request, [Scope.PII])
        async with self.pool.connection() as connection:
            await require_visible(connection, request, asked.subscription_id)
            found = await read_attempts(connection, asked.subscription_id, before=before, limit=asked.limit + 1)
            if asked.responses and found:
                target = f"subscription {asked.subscription_id}"
                await self.readings.record(connection, call_of(request), name="attempts", target=target)
        shown, more = found[: asked.limit], len(found) > asked.limit
        cursor = encode_cursor([shown[-1].recorded_at.isoformat(), shown[-1].webhook_id, shown[-1].number], bound_to) if more else None
        return answer(Page([attempt_shown(one, one.response(self.keyring) if asked.responses else None) for one in shown], cursor))

    async def _switch(self, request: web.Request, switch: Switch) -> UUID:
        subscription_id = _id(request)
        async with self.pool.connection() as connection:
            await require_visible(connection, request, subscription_id)
            with grants_checked():
                turned = await store.turn(connection, subscription_id, switch, actor=caller_of(request).actor, **why_of(request))
            if not turned:
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


def _shown_once(secret: Secret) -> str | None:
    return secret.shown if secret.kind == "hmac" else None


def _route(where: str, handler: Handler, operation_id: str, summary: str, **rest: Any) -> Route:  # noqa: ANN401 - the fields of an operation
    promised = {"scope": "subscriptions", "tag": "subscriptions", "parameters": SubscriptionParameters, **rest}
    return raw_route(where, handler, operation_id=operation_id, summary=summary, **promised)


def routes(
    *,
    pool: Connections,
    keyring: Keyring,
    waker: Wakes,
    targets: Targets,
    allowed: Sequence[Network],
    archive: LogArchive,
    readings: PersonalReadings,
) -> Sequence[Route]:
    """The calls about subscriptions, for the role `api`. The caller opens and closes the targets."""
    calls = SubscriptionCalls(pool=pool, keyring=keyring, waker=waker, targets=targets, allowed=allowed, readings=readings)
    gone = {"problems": (Code.NOT_FOUND,)}
    shown = {"response": SubscriptionShown, "request_headers": WHY_TAKEN, **gone}
    made = {"response": SubscriptionMade, "request_headers": WHY_TAKEN}
    ended = {"statuses": {NO_CONTENT: "ended"}, "request_headers": WHY_TAKEN, **gone}
    return [
        *replay_routes(pool, waker, archive),
        *PortalLinks(pool, keyring).routes(),
        *ChosenSubscriptions(pool, keyring, allowed).routes(),
        _route(
            f"POST {PATH}",
            calls.create,
            "create_subscription",
            "Subscribe",
            parameters=None,
            request=SubscriptionWish,
            rules=(URL_RULE,),
            statuses={CREATED: "made; `secret` is shown once"},
            **made,
        ),
        _route(
            f"GET {PATH}",
            calls.list,
            "list_subscriptions",
            "List subscriptions",
            parameters=SubscriptionListParameters,
            response=Page[SubscriptionShown],
            problems=(Code.INVALID_CURSOR,),
        ),
        _route(f"GET {ONE}", calls.show, "get_subscription", "Show a subscription", response=SubscriptionDetail, **gone),
        _route(
            f"PATCH {ONE}",
            calls.change,
            "change_subscription",
            "Change a subscription",
            request=SubscriptionChange,
            rules=(URL_RULE, "`pii` is for the payload `full`."),
            **shown,
        ),
        _route(f"DELETE {ONE}", calls.delete, "delete_subscription", "Unsubscribe", **ended),
        _route(f"POST {ONE}/pause", calls.pause, "pause_subscription", "Send nothing for now", **shown),
        _route(f"POST {ONE}/resume", calls.resume, "resume_subscription", "Send again", **shown),
        _route(
            f"POST {ONE}/rotate-secret",
            calls.rotate_secret,
            "rotate_subscription_secret",
            "Make a new secret",
            parameters=RotationParameters,
            **made,
            **gone,
        ),
        _route(
            f"POST {ONE}/test",
            calls.test,
            "test_subscription",
            "Send a test once",
            description="The example of a type, with `data.test` true, or a mere `subscription.test`; signed like any other, never "
            "retried, also while the subscription is paused or disabled. `attempts` lists the newest twenty.",
            request=TestRequest,
            request_headers=WHY_TAKEN,
            is_body_optional=True,
            response=TrialShown,
            deadline_seconds=TOTAL_SECONDS + 5,
            **gone,
        ),
        _route(
            f"GET {ONE}/attempts",
            calls.attempts,
            "list_attempts",
            "List attempts",
            parameters=AttemptsParameters,
            request_headers=WHY_TAKEN,
            response=Page[AttemptShown],
            problems=(Code.NOT_FOUND, Code.INVALID_CURSOR),
        ),
    ]
