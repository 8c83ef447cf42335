"""Asks cells over HTTP, with the caller's own key. A cell that does not answer is a value, no error: the rest is still worth something."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import aiohttp
import orjson
import structlog
from aiohttp import hdrs, web
from multidict import CIMultiDict
from yarl import URL

from statesvc.cells.directory import CELL_HEADER, CellDirectory
from statesvc.http.operation import Handler, header_text
from statesvc.http.problem import OK, Code, Problem, Violation
from statesvc.telemetry.metrics import Telemetry

CONNECT_SECONDS: Final = 2.0
_SILENT_SECONDS: Final = 60.0
"""A stream says something every 15 s."""
_HOP_BY_HOP: Final = frozenset(
    {"connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailer", "transfer-encoding", "upgrade"}
)
_REQUEST_ONLY: Final = frozenset({"host", "content-length", "x-forwarded-for", CELL_HEADER.lower()})
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class CellAnswer:
    """What a cell said: JSON below the status 500."""

    status: int
    document: Any
    headers: Mapping[str, str]

    @property
    def is_refusal(self) -> bool:
        """Whether it is the caller's fault."""
        return self.status >= 400


A = TypeVar("A", CellAnswer, aiohttp.ClientResponse | CellAnswer)


@dataclass(frozen=True, slots=True)
class Gathered:
    """What the cells said, by name, in the order of the directory, and those that said nothing."""

    answers: Mapping[str, CellAnswer]
    partial: Sequence[str]

    @property
    def documents(self) -> dict[str, Any]:
        """By name of the cell."""
        return {name: answer.document for name, answer in self.answers.items()}

    def require_any(self) -> None:
        """Raises the problem 503 where no cell answered, and the first refusal of a cell as it stands."""
        if not self.answers:
            raise unavailable(self.partial)
        for answer in self.answers.values():
            if answer.is_refusal:
                raise RefusedError(answer)


class RefusedError(Exception):
    """A cell refused the call, as every cell would: its answer is the caller's."""

    def __init__(self, answer: CellAnswer) -> None:
        super().__init__("a cell refused the call")
        self.answer = answer

    def response(self) -> web.Response:
        """The cell's own answer."""
        named = (hdrs.WWW_AUTHENTICATE, hdrs.RETRY_AFTER, hdrs.ALLOW)
        headers = {name: self.answer.headers[name] for name in named if name in self.answer.headers}
        content_type = self.answer.headers.get(hdrs.CONTENT_TYPE, "application/json").partition(";")[0]
        return web.Response(body=orjson.dumps(self.answer.document), status=self.answer.status, content_type=content_type, headers=headers)


def unavailable(names: Iterable[str]) -> Problem:
    """The problem that these cells do not answer."""
    away = sorted(names)
    return Problem(Code.CELL_UNAVAILABLE, f"no answer from: {', '.join(away)}; try again", members={"partial": away})


class CellClient:
    """Open until `close`. `answer_seconds`: how long a cell may take before the answer goes out without it."""

    def __init__(self, directory: CellDirectory, telemetry: Telemetry, *, answer_seconds: float) -> None:
        self.directory = directory
        self._duration = telemetry.gateway_cell_duration
        self._answer_seconds = answer_seconds
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=30), auto_decompress=False, cookie_jar=aiohttp.DummyCookieJar()
        )

    async def close(self) -> None:
        """Ends all connections."""
        await self._session.close()

    async def gather(self, request: web.Request, asked: Mapping[str, Mapping[str, Any]]) -> Gathered:
        """Asks these cells at once what the request asks, each with its own query."""
        path = request.rel_url.raw_path
        return await _gathered({name: self.ask(request, name, path=path, query=query) for name, query in asked.items()})

    async def ask_all(self, request: web.Request, method: str, path: str, document: Mapping[str, Any] | None = None) -> Gathered:
        """A call to every cell, with this document, in the caller's name."""
        body = None if document is None else orjson.dumps(document)
        return await _gathered({name: self.ask(request, name, path=path, method=method, body=body) for name in self.directory.cells})

    async def ask(
        self,
        request: web.Request,
        name: str,
        *,
        path: str,
        method: str | None = None,
        query: Mapping[str, Any] | None = None,
        body: bytes | None = None,
    ) -> CellAnswer | None:
        """The cell's answer to the caller's call; None where it does not come in time, is an error of the cell's own, or no JSON.

        `method` and `body`: where they are not the caller's; then the body is JSON.
        """
        headers = _passed_on(request)
        if method is not None:
            headers[hdrs.CONTENT_TYPE] = "application/json"

        async def asked() -> CellAnswer:
            return await _read_answer(await self._open(name, method or request.method, path, params=query, headers=headers, data=body))

        return await self._timed(name, asked)

    async def open(
        self, request: web.Request, name: str, *, query: Mapping[str, Any], headers: Mapping[str, str]
    ) -> aiohttp.ClientResponse | CellAnswer | None:
        """The cell's stream, which the caller closes; or its refusal; None where it does not answer in time."""
        passed_on = _without(_passed_on(request), frozenset({"last-event-id"}))
        passed_on.update(headers)

        async def opened() -> aiohttp.ClientResponse | CellAnswer:
            response = await self._open(name, request.method, request.rel_url.raw_path, params=query, headers=passed_on)
            return response if response.status == OK else await _read_answer(response)

        return await self._timed(name, opened)

    async def _timed(self, name: str, call: Callable[[], Awaitable[A]]) -> A | None:
        """What the cell says; None where it says nothing."""
        started = time.perf_counter()
        try:
            async with asyncio.timeout(self._answer_seconds):
                found = await call()
        except (aiohttp.ClientError, TimeoutError, OSError, orjson.JSONDecodeError) as error:
            self._away(name, type(error).__name__, started)
            return None
        self._record(name, "refused" if found.status >= 400 else "answered", started)
        return found

    def _away(self, name: str, why: str, started: float) -> None:
        _log.warning("cell_unavailable", cell=name, why=why)
        self._record(name, "unavailable", started)

    def _record(self, name: str, outcome: str, started: float) -> None:
        self._duration.record(time.perf_counter() - started, {"cell": name, "outcome": outcome})

    def named(self, request: web.Request) -> str:
        """The cell in the header. Raises the problems `unauthenticated` and `invalid_request`."""
        name = request.headers.get(CELL_HEADER)
        if name in self.directory.cells:
            return name
        if not request.headers.get(hdrs.AUTHORIZATION):
            # as every cell would say first
            raise Problem(Code.UNAUTHENTICATED, "send `Authorization: Bearer <key>`", headers={hdrs.WWW_AUTHENTICATE: "Bearer"})
        known = ", ".join(self.directory.cells)
        why = f"this call is about one cell: send its name; there are: {known}" if name is None else f"names no cell; there are: {known}"
        violation = Violation(f"/header/{CELL_HEADER}", why)
        raise Problem(Code.INVALID_REQUEST, f"the header {CELL_HEADER} breaks the contract", violations=[violation])

    async def forward(self, request: web.Request, name: str) -> web.StreamResponse:
        """The whole call, to one cell, whose answer comes through as it is sent; the cell sees by the header that it is one of several.

        Raises the problem 503.
        """
        body = await request.read()
        headers = _passed_on(request)
        headers[CELL_HEADER] = name
        headers[hdrs.HOST] = request.host
        started = time.perf_counter()
        if request.remote is not None:
            before = request.headers.get(hdrs.X_FORWARDED_FOR)
            headers[hdrs.X_FORWARDED_FOR] = request.remote if before is None else f"{before}, {request.remote}"
        try:
            opened = await self._open(name, request.method, request.raw_path, headers=headers, data=body or None)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            self._away(name, type(error).__name__, started)
            raise unavailable([name]) from None
        self._record(name, "refused" if opened.status >= 400 else "answered", started)
        async with opened:
            response = web.StreamResponse(status=opened.status, headers=_without(opened.headers, _HOP_BY_HOP))
            response.headers[CELL_HEADER] = name
            await response.prepare(request)
            async for chunk in opened.content.iter_any():
                await response.write(chunk)
            await response.write_eof()
            return response

    async def _open(self, name: str, method: str, path: str, **options: Any) -> aiohttp.ClientResponse:  # noqa: ANN401 - those of aiohttp
        """At the first address of the cell that takes the connection: nothing was sent to those before."""
        timeout = aiohttp.ClientTimeout(sock_connect=CONNECT_SECONDS, sock_read=_SILENT_SECONDS)
        *others, last = self.directory.cells[name].urls
        for url in others:
            try:
                return await self._request(method, url, path, timeout=timeout, **options)
            except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError):
                continue
        return await self._request(method, last, path, timeout=timeout, **options)

    async def _request(self, method: str, url: str, path: str, **options: Any) -> aiohttp.ClientResponse:  # noqa: ANN401
        # a path comes as it was sent, and is not quoted again
        return await self._session.request(method, URL(url + path, encoded=True), allow_redirects=False, **options)


def one_or_all(cells: CellClient, over_cells: Handler) -> Handler:
    """The handler of a call that spans cells; of the one cell alone that the header names. A cell's refusal is the answer."""

    async def call(request: web.Request) -> web.StreamResponse:
        if CELL_HEADER in request.headers:
            return await cells.forward(request, cells.named(request))
        try:
            return await over_cells(request)
        except RefusedError as refused:
            return refused.response()

    return call


async def _gathered(calls: Mapping[str, Awaitable[CellAnswer | None]]) -> Gathered:
    """All of them at once, by the cell's name."""
    answers = dict(zip(calls, await asyncio.gather(*calls.values()), strict=True))
    found = {name: answer for name, answer in answers.items() if answer is not None}
    return Gathered(found, [name for name in answers if name not in found])


async def _read_answer(response: aiohttp.ClientResponse) -> CellAnswer:
    """Raises aiohttp's ClientError for an error of the cell's own."""
    async with response:
        content = await response.read()
        if response.status >= 500:
            response.raise_for_status()
        return CellAnswer(status=response.status, document=orjson.loads(content) if content else None, headers=response.headers)


def _passed_on(request: web.Request) -> CIMultiDict[str]:
    return _without(request.headers, _HOP_BY_HOP | _REQUEST_ONLY)


def _without(headers: Mapping[str, str], dropped: frozenset[str]) -> CIMultiDict[str]:
    # aiohttp writes nothing of a value that is not UTF-8: the cell would find an empty one
    return CIMultiDict((name, header_text(value)) for name, value in headers.items() if name.lower() not in dropped)
