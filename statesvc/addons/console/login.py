"""The login of the console: starting a session with an API key, allowing changes, ending it."""

import re
from typing import Final

from aiohttp import web

from statesvc.addons.console.frame import LOGIN, PAGE, ScreenFrame
from statesvc.addons.console.pages import Templates, read_form, redirect
from statesvc.addons.console.screen import HOME, PageRequest
from statesvc.addons.console.web_sessions import (
    Cookie,
    WebSessions,
    form_token,
    fresh_token,
    is_form_token,
)
from statesvc.http.operation import Route

_INNER: Final = re.compile(r"/console(?:[/?][!-~]*)?")


class LoginPages:
    """Begins and ends sessions."""

    def __init__(self, frame: ScreenFrame, *, pages: Templates, sessions: WebSessions) -> None:
        self._frame = frame
        self._pages = pages
        self._sessions = sessions

    def routes(self) -> list[Route]:
        frame = self._frame
        return [
            Route("GET", LOGIN, frame.readable(self._form), PAGE),
            Route("POST", LOGIN, frame.readable(self._log_in), PAGE),
            Route("POST", "/console/logout", frame.visited(self._log_out), PAGE),
            Route("POST", "/console/changes", frame.visited(self._allow_changes), PAGE),
        ]

    async def _form(self, request: web.Request) -> web.StreamResponse:
        return self._page(request, "")

    def _page(self, request: web.Request, error: str) -> web.Response:
        cookie, to = Cookie(request), request.query.get("to", HOME)
        token = cookie.token or fresh_token()
        response = self._pages.response(
            "login.html",
            {
                "form_token": form_token(token),
                "error": error,
                "to": to if _INNER.fullmatch(to) else HOME,
            },
        )
        cookie.set(response, token)
        return response

    async def _log_in(self, request: web.Request) -> web.StreamResponse:
        posted, cookie = await read_form(request), Cookie(request)
        if not is_form_token(cookie.token, posted.get("form_token", "")):
            error = (
                "Your browser sent no cookie with this form. Use HTTPS, or http://localhost"
                " through a tunnel, and try again."
            )
            return self._page(request, error)
        token = await self._sessions.begin(
            posted.get("key", "").strip(), may_change="may_change" in posted
        )
        if token is None:
            return self._page(request, "This key is not valid: it is mistyped, or was revoked.")
        to = posted.get("to", HOME)
        response = redirect(to if _INNER.fullmatch(to) else HOME)
        cookie.set(response, token)
        return response

    async def _log_out(self, visit: PageRequest) -> web.StreamResponse:
        await self._sessions.end(visit.session.token)
        response = redirect(LOGIN)
        Cookie(visit.request).clear(response)
        return response

    async def _allow_changes(self, visit: PageRequest) -> web.StreamResponse:
        posted = await read_form(visit.request)
        await self._sessions.set_may_change(
            visit.session.token, may_change=posted.get("may_change") == "1"
        )
        to = posted.get("to", HOME)
        return redirect(to if _INNER.fullmatch(to) else HOME)
