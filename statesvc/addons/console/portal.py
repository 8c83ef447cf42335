"""`/portal`: what a subscriber sees of its own subscriptions, behind a link (`statesvc/api/subscriptions/portal_links.py`).

The pages make calls of the API about subscriptions, as a caller that may do nothing but see to those of one owner: another owner's are not
there, whatever id is asked for. The link's token becomes a cookie, so that it stands in no history and in no log of what comes after.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from aiohttp import hdrs, web

from events.crypto.keyring import Keyring
from statesvc.addons.console.html_exchange import (
    Handler,
    read_form,
    readable,
    redirect,
    utc_instant,
)
from statesvc.addons.console.pages import Templates
from statesvc.addons.console.web_sessions import Cookie, form_token, is_form_token
from statesvc.api.subscriptions.portal_links import (
    LINK,
    MINUTES_MAX,
    PORTAL,
    PortalLinks,
    PortalVisit,
)
from statesvc.api.subscriptions.subscription_operations import ONE, PATH
from statesvc.database.pool import Connections
from statesvc.delivery.event_catalogue import EVENT_TYPES
from statesvc.http.inner_calls import InnerCalls, Json
from statesvc.http.keys.api_keys import Keys
from statesvc.http.keys.key_limits import KeyLimits
from statesvc.http.operation import Operation, Route, operation
from statesvc.http.problem import Code, Problem

CALLS: Final = (
    f"GET {PATH}",
    f"GET {ONE}",
    f"GET {ONE}/attempts",
    f"POST {ONE}/test",
    f"POST {ONE}/pause",
    f"POST {ONE}/resume",
    f"POST {ONE}/replay",
    f"POST {ONE}/rotate-secret",
)
"""All that the portal does."""
_SUBSCRIPTION: Final = PORTAL + "/subscriptions/{subscription_id}"
_ATTEMPTS: Final = 25
_DONE: Final[Mapping[str, str]] = {
    "pause": "Paused: notifications collect until you resume.",
    "resume": "Resumed: what collected is sent first.",
    "test": "The test was sent: it is the newest of the attempts.",
}
"""By what was done, for the page after it."""

Answer = Callable[["Guest"], Awaitable[web.StreamResponse]]


class Guest:
    """One request behind a link."""

    def __init__(self, request: web.Request, visit: PortalVisit, calls: InnerCalls) -> None:
        self.request = request
        self.visit = visit
        self._calls = calls

    @property
    def path(self) -> str:
        """Path of the subscription's page."""
        return _SUBSCRIPTION.format_map(self.request.match_info)

    async def call_api(
        self, name: str, body: Mapping[str, Json] | None = None, /, **given: Json
    ) -> Json:
        """Make a call of the API, of the subscription that the path names if any. Raises Problem."""
        return await self._calls.call(
            self.visit.caller, name, given={**self.request.match_info, **given}, body=body
        )


class Portal:
    """The pages. `calls`: those of the API, of which it uses `CALLS`."""

    def __init__(
        self,
        calls: Sequence[Route],
        *,
        pages: Templates,
        links: PortalLinks,
        keys: Keys,
        limits: KeyLimits | None,
    ) -> None:
        self._calls = InnerCalls(
            [route for route in calls if f"{route.method} {route.path}" in CALLS], limits
        )
        self._pages = pages
        self._links = links
        self._keys = keys

    def routes(self) -> list[Route]:
        page: Operation[None] = operation(
            operation_id="show_portal",
            summary="The portal of a subscriber",
            scope=None,
            checked=False,
            response_types=("text/html",),
        )
        served: list[tuple[str, str, Handler]] = [
            ("GET", PORTAL, self._enter),
            ("GET", _SUBSCRIPTION, self._visited(self._subscription)),
            ("POST", f"{_SUBSCRIPTION}/replay", self._visited(self._replay)),
            ("POST", f"{_SUBSCRIPTION}/rotate-secret", self._visited(self._rotate_secret)),
            *(
                ("POST", f"{_SUBSCRIPTION}/{deed}", self._visited(self._done(deed)))
                for deed in _DONE
            ),
        ]
        return [
            Route(method, path, readable(handler, self._pages, "portal_problem.html"), page)
            for method, path, handler in served
        ]

    # who is there

    async def _enter(self, request: web.Request) -> web.StreamResponse:
        token = request.query.get(LINK)
        if token is None:
            return await self._visited(self._subscriptions)(request)
        visit = await self._links.visit(token, self._keys)
        response = redirect(PORTAL)
        _cookie(request, visit).set(response, token)
        return response

    def _visited(self, answer: Answer) -> Handler:
        """Require a link which is still good, and for a POST the token of its forms."""

        async def call(request: web.Request) -> web.StreamResponse:
            visit = await self._links.visit(_cookie(request).token, self._keys)
            if request.method == hdrs.METH_POST:
                posted = await read_form(request)
                if not is_form_token(visit.token, posted.get("form_token", "")):
                    raise Problem(
                        Code.BAD_REQUEST,
                        "this form is not of your visit: open its page again and send it from there",
                    )
            return await answer(Guest(request, visit, self._calls))

        return call

    def _page(
        self, guest: Guest, template: str, title: str, values: Mapping[str, Any]
    ) -> web.Response:
        frame = {
            "title": title,
            "visit": guest.visit,
            "form_token": form_token(guest.visit.token),
            "portal": PORTAL,
        }
        return self._pages.response(template, {**frame, **values})

    # pages

    async def _subscriptions(self, guest: Guest) -> web.StreamResponse:
        cursor = guest.request.query.get("cursor")
        listed = await guest.call_api(
            f"GET {PATH}", **({} if cursor is None else {"cursor": cursor})
        )
        return self._page(guest, "portal.html", "Your subscriptions", {"page": listed})

    async def _subscription(self, guest: Guest) -> web.StreamResponse:
        return await self._shown(guest, note=_DONE.get(guest.request.query.get("done", "")))

    async def _shown(
        self, guest: Guest, *, note: str | None = None, replay: Mapping[str, Any] | None = None
    ) -> web.Response:
        one = await guest.call_api(f"GET {ONE}")
        cursor = guest.request.query.get("cursor")
        position = {} if cursor is None else {"cursor": cursor}
        attempts = await guest.call_api(
            f"GET {ONE}/attempts",
            limit=_ATTEMPTS,
            responses=guest.visit.shows_responses,
            **position,
        )
        values = {
            "one": one,
            "attempts": attempts,
            "kinds": [each.kind for each in EVENT_TYPES],
            "note": note,
            "replay": replay,
            "path": guest.path,
        }
        return self._page(guest, "portal_subscription.html", one["name"] or one["url"], values)

    # deeds

    def _done(self, deed: str) -> Answer:
        async def answer(guest: Guest) -> web.StreamResponse:
            kind = (await read_form(guest.request)).get("type")
            await guest.call_api(
                f"POST {ONE}/{deed}", {"type": kind} if deed == "test" and kind else None
            )
            return redirect(f"{guest.path}?done={deed}")

        return answer

    async def _replay(self, guest: Guest) -> web.StreamResponse:
        """Count first; with the step `do`, send, as much as one call may."""
        posted = await read_form(guest.request)
        asked = {name: posted[name] for name in ("since", "until", "cursor") if posted.get(name)}
        for name in ("since", "until"):
            if name in asked:
                asked[name] = utc_instant(asked[name], name)
        wish = {
            **asked,
            "delivered_too": posted.get("delivered_too") == "1",
            "dry_run": posted.get("step") != "do",
        }
        return await self._shown(
            guest,
            replay={"wish": wish, "progress": await guest.call_api(f"POST {ONE}/replay", wish)},
        )

    async def _rotate_secret(self, guest: Guest) -> web.StreamResponse:
        hours = (await read_form(guest.request)).get("grace_hours", "")
        made = await guest.call_api(f"POST {ONE}/rotate-secret", grace_hours=hours or "24")
        return self._page(
            guest,
            "portal_secret.html",
            "A new secret",
            {"made": made, "path": guest.path, "hours": hours or "24"},
        )


def _cookie(request: web.Request, visit: PortalVisit | None = None) -> Cookie:
    seconds = (
        MINUTES_MAX * 60.0
        if visit is None
        else (visit.expires_at - datetime.now(UTC)).total_seconds()
    )
    return Cookie(request, name="statesvc-portal", same_site="Lax", seconds=max(seconds, 1.0))


def routes(
    calls: Sequence[Route],
    *,
    pool: Connections,
    keyring: Keyring,
    keys: Keys,
    limits: KeyLimits | None = None,
) -> list[Route]:
    """Return the pages' routes; the console serves their styles and scripts. `calls`: those of the API."""
    return Portal(
        calls, pages=Templates(), links=PortalLinks(pool, keyring), keys=keys, limits=limits
    ).routes()
