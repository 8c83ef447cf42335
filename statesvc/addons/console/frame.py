"""Frame of every page of the console: session, navigation, checked forms, readable errors.

Every POST carries a token that only a page made for its session can know, and every change has a
reason and a preview.
"""

import base64
import hashlib
import hmac
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from aiohttp import hdrs, web

from statesvc.addons.console.frame_menu import Menu
from statesvc.addons.console.pages import Handler, Templates, read_form, readable, redirect
from statesvc.addons.console.screen import (
    HOME,
    Done,
    DryRun,
    FormAction,
    Input,
    PageRequest,
    Redirect,
    Screen,
    Values,
)
from statesvc.addons.console.web_sessions import WebSession, form_token, is_form_token
from statesvc.api.computing import COMPUTING_SECONDS
from statesvc.http.inner_calls import InnerCalls
from statesvc.http.keys.key_store import Scope
from statesvc.http.operation import Operation, Route, operation
from statesvc.http.problem import NOT_FOUND, OK, UNAUTHORIZED, Code, Problem
from statesvc.http.views import Line, path_segment

LOGIN: Final = "/console/login"
WHY_CHARS_MAX: Final = 1000
_NOTE: Final = "statesvc_note"
# Problems that a person can do something about: the form shows them and stays filled.
_REFUSED: Final = frozenset(
    {
        Code.INVALID_REQUEST,
        Code.CONFLICT,
        Code.NOT_FOUND,
        Code.UNKNOWN_CARRIER,
        Code.HELD,
        Code.TOO_MANY_REQUESTS,
    }
)
# Values of `view.html` that a page leaves out.
_EMPTY: Final[Mapping[str, Any]] = {
    **dict.fromkeys(("chips", "acts", "inputs", "blocks", "runbook"), ()),
    **dict.fromkeys(("crumb", "next_cursor", "masked", "is_live"), None),
    "nav": "",
    "button": "Filter",
    "wanted": {},
    "form_path": None,
}

Answer = Callable[[PageRequest], Awaitable[web.StreamResponse]]
FindSession = Callable[[web.Request], Awaitable[WebSession | None]]
PAGE: Final[Operation[None]] = operation(
    operation_id="show_console_page",
    summary="A page of the console",
    scope=None,
    checked=False,
    response_types=("text/html",),
)


class ScreenFrame:
    """Serves screens and actions to holders of a session.

    `home`: their address, if not the console's.
    """

    def __init__(
        self,
        *,
        pages: Templates,
        find: FindSession,
        calls: InnerCalls,
        screens: Sequence[Screen],
        actions: Sequence[FormAction],
        menu: Menu,
        home: str = HOME,
    ) -> None:
        self.home = home
        self._pages = pages
        self._menu = menu
        self._find = find
        self._calls = calls
        self._screens = {screen.path: screen for screen in screens}
        self._actions = actions

    def routes(self) -> list[Route]:
        working = replace(PAGE, deadline_seconds=COMPUTING_SECONDS)
        served = []
        for screen in self._screens.values():
            path, show = self._at(screen.path), self.visited(self._shown(screen))
            served.append(Route("GET", path, show, working if screen.is_computed else PAGE))
            if screen.personal is not None:
                served.append(Route("POST", path, show, working))
        for action in self._actions:
            served += [
                Route("GET", self._at(action.path), self.visited(self._asked(action)), PAGE),
                Route("POST", self._at(action.path), self.visited(self._posted(action)), working),
            ]
        unknown = Route("GET", f"{self.home}/{{path:.+}}", self.visited(self._unknown), PAGE)
        return [*served, unknown]

    def _at(self, path: str) -> str:
        return self.home + path.removeprefix(HOME)

    async def response(
        self,
        visit: PageRequest,
        template: str,
        title: str,
        values: Mapping[str, Any],
        *,
        section: str = "",
        status: int = OK,
    ) -> web.Response:
        response = self._pages.response(
            template,
            {**_EMPTY, **await self._frame(visit, title, section), **values},
            status=status,
        )
        if _NOTE in visit.request.cookies:
            response.del_cookie(_NOTE, path=self.home)
        return response

    async def _frame(self, visit: PageRequest, title: str, section: str) -> dict[str, Any]:
        session = visit.session
        here = self._screens.get(section)
        return {
            "title": title,
            "menu": await self._menu.groups(visit, section),
            "section_name": title if here is None or here.menu is None else here.menu,
            "scopes": ", ".join(sorted(scope.value for scope in session.caller.scopes))
            if not session.may(Scope.ADMIN)
            else "admin",
            "session": session,
            "form_token": form_token(session.token),
            "note": _note_of(visit),
            "here": visit.request.path_qs,
            "here_path": visit.request.path,
            "home": self.home,
            "visit": visit,
        }

    # who is there

    def visited(self, answer: Answer) -> Handler:
        """Require a session, and for a POST the token of its forms; send others to the login."""

        async def call(request: web.Request) -> web.StreamResponse:
            session = await self._find(request)
            if session is None:
                return _to_login(request)
            posted = await read_form(request) if request.method == hdrs.METH_POST else {}
            token = posted.get("form_token", "")
            if request.method == hdrs.METH_POST and not is_form_token(session.token, token):
                raise Problem(
                    Code.BAD_REQUEST,
                    "this form is not of your session: open its page again, and send it from there",
                )
            visit = PageRequest(
                request, session, self._calls, self._screens, posted=posted, home=self.home
            )
            try:
                return await answer(visit)
            except Problem as problem:
                if problem.code is not Code.MISSING_SCOPE:
                    raise
                status = problem.response().status
                return await self._said(visit, "Not for this session", problem.detail, status)

        return self.readable(call)

    def readable(self, handler: Handler) -> Handler:
        return readable(handler, self._pages, self.home)

    # screens and actions

    def _shown(self, screen: Screen) -> Answer:
        async def answer(visit: PageRequest) -> web.StreamResponse:
            if screen.path == HOME and not visit.has(screen.scope):
                return await self._first_that_it_may(visit)
            _require(visit.session, screen.scope)
            if visit.posted:
                _require(visit.session, screen.personal)
                reason = visit.posted.get(screen.reason, "").strip()
                if not reason or len(reason) > WHY_CHARS_MAX:
                    raise Problem(
                        Code.INVALID_REQUEST, "say what for: the log stores it with your key"
                    )
                visit = replace(visit, why=reason)
            values = await screen.show(visit)
            if isinstance(values, Redirect):
                return redirect(values.path)
            if isinstance(values, web.StreamResponse):
                return values
            return await self.response(
                visit, screen.template, screen.title, values, section=screen.section or screen.path
            )

        return answer

    async def _first_that_it_may(self, visit: PageRequest) -> web.StreamResponse:
        for screen in self._screens.values():
            if screen.menu is not None and visit.has(screen.scope):
                return redirect(screen.path)
        key = visit.session.caller.key_id
        said = f"The key {key} has no scope that any screen takes: most take ops."
        return await self._said(visit, "Nothing to see", said, OK)

    async def _unknown(self, visit: PageRequest) -> web.StreamResponse:
        said = f"No page has the address {visit.request.path}. The screens are in the menu."
        return await self._said(visit, "There is no such page", said, NOT_FOUND)

    async def _said(self, visit: PageRequest, title: str, said: str, status: int) -> web.Response:
        values = {"blocks": [Line(said)]}
        return await self.response(visit, "view.html", title, values, status=status)

    def _asked(self, action: FormAction) -> Answer:
        async def answer(visit: PageRequest) -> web.StreamResponse:
            _require_change(visit.session, action.scope)
            return await self._form_page(
                visit, action, values={**visit.request.query}, dry_run=None
            )

        return answer

    def _posted(self, action: FormAction) -> Answer:
        async def answer(visit: PageRequest) -> web.StreamResponse:
            _require_change(visit.session, action.scope)
            posted = visit.posted
            why = posted.get("why", "").strip()
            if not why or len(why) > WHY_CHARS_MAX:
                return await self._form_page(
                    visit,
                    action,
                    values=posted,
                    dry_run=None,
                    errors=["Say why: the log stores it."],
                )
            values = {**posted, "why": why}
            try:
                if posted.get("step") != "do":
                    return await self._form_page(
                        visit, action, values=values, dry_run=await action.dry_run(visit, values)
                    )
                acting = replace(visit, why=why)
                return await self._finished(acting, action, await action.carry_out(acting, values))
            except Problem as problem:
                if problem.code not in _REFUSED:
                    raise
                errors = [
                    problem.detail,
                    *(
                        f"{each.pointer.removeprefix('/body/')}: {each.detail}"
                        for each in problem.violations
                    ),
                ]
                return await self._form_page(
                    visit, action, values=values, dry_run=None, errors=errors
                )

        return answer

    async def _form_page(
        self,
        visit: PageRequest,
        action: FormAction,
        *,
        values: Values,
        dry_run: DryRun | None,
        errors: Sequence[str] = (),
    ) -> web.Response:
        inputs: Sequence[Input] = () if action.inputs is None else await action.inputs(visit)
        return await self.response(
            visit,
            "action.html",
            action.title.format_map(visit.request.match_info),
            {
                "action": action,
                "inputs": inputs,
                "values": values,
                "dry_run": dry_run,
                "errors": errors,
                "back": visit.at(
                    action.back.format_map(
                        {
                            name: path_segment(part)
                            for name, part in visit.request.match_info.items()
                        }
                    )
                ),
            },
            section=action.section,
        )

    async def _finished(
        self, visit: PageRequest, action: FormAction, done: Done | Mapping[str, Any]
    ) -> web.Response:
        if not isinstance(done, Done):
            title = action.title.format_map(visit.request.match_info)
            values = {"why": visit.why, **done}
            return await self.response(
                visit, "progress.html", title, values, section=action.section
            )
        response = redirect(visit.at(done.then))
        response.set_cookie(
            _NOTE,
            _signed_note(visit.session, done.sentence),
            max_age=60,
            path=self.home,
            httponly=True,
            samesite="Strict",
        )
        return response


def _require(session: WebSession, scope: Scope | None) -> None:
    if scope is not None and not session.may(scope):
        raise Problem(
            Code.MISSING_SCOPE,
            f"this page takes a key with scope `{scope.value}`; log in with one that has it",
        )


def _require_change(session: WebSession, scope: Scope) -> None:
    _require(session, scope)
    if not session.may_change:
        raise Problem(
            Code.MISSING_SCOPE,
            "this session only reads: allow changes at the top of any page first",
        )


def _to_login(request: web.Request) -> web.Response:
    """Redirect to the login; a page that updates itself is led there as a whole."""
    asked = request.path_qs if request.method == hdrs.METH_GET else HOME
    if "HX-Request" in request.headers:
        return web.Response(status=UNAUTHORIZED, headers={"HX-Redirect": LOGIN})
    return redirect(str(request.rel_url.with_path(LOGIN).with_query({"to": asked})))


def _signed_note(session: WebSession, sentence: str) -> str:
    """Encode a sentence about the last action for the next page.

    Signed, so that it cannot be forged.
    """
    text = base64.urlsafe_b64encode(sentence.encode()).decode()
    return f"{text}.{_note_signature(session, text)}"


def _note_signature(session: WebSession, text: str) -> str:
    return hmac.new(
        session.token.encode(), b"note" + text.encode("utf-8", "replace"), hashlib.sha256
    ).hexdigest()


def _note_of(visit: PageRequest) -> str | None:
    text, _, signature = visit.request.cookies.get(_NOTE, "").partition(".")
    if not signature or not hmac.compare_digest(
        signature.encode("utf-8", "replace"), _note_signature(visit.session, text).encode()
    ):
        return None
    return base64.urlsafe_b64decode(text).decode()
