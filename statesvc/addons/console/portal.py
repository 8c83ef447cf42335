"""`/portal`: a subscriber's own subscriptions, behind a link.

See `statesvc/api/subscriptions/portal_links.py`. The portal shows the console's pages about
subscriptions to a caller that may make a few calls about those of a single owner: another owner's
are absent, whatever id is asked for. The link's token becomes a cookie, so that no history and no
log of later requests holds it.
"""

from datetime import UTC, datetime
from typing import Final

from aiohttp import web

from statesvc.addons.console.declared_pages import declared_pages
from statesvc.addons.console.frame import PAGE, ScreenFrame
from statesvc.addons.console.frame_menu import Menu
from statesvc.addons.console.operation_forms import declared_actions
from statesvc.addons.console.pages import Templates, redirect
from statesvc.addons.console.subscription_screens import subscription_pages
from statesvc.addons.console.web_sessions import Cookie, WebSession
from statesvc.api.subscriptions.portal_links import LINK, MINUTES_MAX, PORTAL, PortalLinks
from statesvc.api.subscriptions.subscription_operations import ONE, PATH
from statesvc.http.inner_calls import InnerCalls
from statesvc.http.operation import Route
from statesvc.http.served_calls import ServedCalls

DEEDS: Final = ("pause", "resume", "test", "replay", "rotate-secret")
CALLS: Final = (
    f"GET {PATH}",
    f"GET {ONE}",
    f"GET {ONE}/attempts",
    *(f"POST {ONE}/{deed}" for deed in DEEDS),
)


def routes(served: ServedCalls) -> list[Route]:
    """Return the pages' routes; the console serves their styles and scripts."""
    links = PortalLinks(served.pool, served.keyring)

    async def find(request: web.Request) -> WebSession:
        visit = await links.visit(_cookie(request).token, served.keys)
        return WebSession(visit.token, visit.caller, may_change=True, ends_at=visit.expires_at)

    async def enter(request: web.Request) -> web.StreamResponse:
        token = request.query.get(LINK)
        if token is None:
            return redirect(f"{PORTAL}/subscriptions")
        visit = await links.visit(token, served.keys)
        response = redirect(f"{PORTAL}/subscriptions")
        seconds = (visit.expires_at - datetime.now(UTC)).total_seconds()
        _cookie(request, seconds).set(response, token)
        return response

    calls = [route for route in served.calls if f"{route.method} {route.path}" in CALLS]
    actions = [*declared_actions(calls)]
    screens = [*declared_pages(calls, actions), *subscription_pages(served.pool)]
    frame = ScreenFrame(
        pages=Templates(),
        find=find,
        calls=InnerCalls(calls, served.limits),
        screens=screens,
        menu=Menu(served.readable, screens),
        actions=actions,
        home=PORTAL,
    )
    return [Route("GET", PORTAL, frame.readable(enter), PAGE), *frame.routes()]


def _cookie(request: web.Request, seconds: float = MINUTES_MAX * 60.0) -> Cookie:
    return Cookie(request, name="statesvc-portal", same_site="Lax", seconds=max(seconds, 1.0))
