"""Calls of a running service over HTTP, without loading the database driver or a carrier."""

import json
from collections.abc import Mapping
from http.client import HTTPException
from typing import Any, Final
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import HTTPRedirectHandler, Request, build_opener

from statesvc import __version__
from statesvc.cli.api_calls import CallRefusedError, Calls, File, Json, ServiceAwayError
from statesvc.cli.command_error import CommandError
from statesvc.cli.operation_table import ListedOperation, operation_named
from statesvc.cli.service_profile import Service
from statesvc.http.views import path_segment

# Allowance for the network beyond the service's own deadline.
_SPARE_SECONDS: Final = 10.0
_PROBLEM: Final = "application/problem+json"


class _NoRedirects(HTTPRedirectHandler):
    """A key is for the service that it was given for alone."""

    def redirect_request(self, *_args: object, **_kwargs: object) -> None:
        """Follow no redirect."""


class RemoteCalls(Calls):
    def __init__(self, service: Service, *, agent: str = "statesvc") -> None:
        self.named = {"service": service.url}
        self._service = service
        self._agent = f"{agent}/{__version__}"
        self._opener = build_opener(_NoRedirects)

    async def fetch(
        self,
        operation_id: str,
        body: Mapping[str, Json] | None = None,
        /,
        *,
        accept: str,
        why: str = "",
        **given: Json,
    ) -> File:
        operation = operation_named(operation_id)
        # a header of several lines would be others
        if not why.isprintable():
            raise CommandError("the reason takes printable characters alone", exit_code=2)
        try:
            request = self._request(operation, body, why=why, given=given, accept=accept)
        except UnicodeEncodeError:
            raise CommandError("an argument is not text in UTF-8", exit_code=2) from None
        seconds = None if operation.seconds is None else operation.seconds + _SPARE_SECONDS
        try:
            with self._opener.open(request, timeout=seconds) as answer:
                return File(answer.read(), dict(answer.headers.items()))
        except HTTPError as error:
            raise self._refused(error, operation) from None
        except (OSError, HTTPException) as error:
            # an URLError is an OSError, and wraps the one that says why
            why_away = _reason(error.reason if isinstance(error, URLError) else error)
            raise ServiceAwayError(f"{self._service.url} does not answer: {why_away}") from None

    def _request(
        self,
        operation: ListedOperation,
        body: Mapping[str, Json] | None,
        *,
        why: str,
        given: Mapping[str, Json],
        accept: str,
    ) -> Request:
        method, _, path = operation.where.partition(" ")
        stated = {name: _text(value) for name, value in given.items() if value is not None}
        in_path = {
            name: path_segment(value)
            for name, value in stated.items()
            if f"{{{name}}}" in path and isinstance(value, str)
        }
        query = urlencode(
            {name: value for name, value in stated.items() if name not in in_path}, doseq=True
        )
        headers = {
            "Authorization": f"Bearer {self._service.key}",
            "Accept": accept,
            "Prefer": "handling=strict",
            "User-Agent": self._agent,
        }
        if why:
            headers["Statesvc-Why"] = why.encode().decode("latin-1")
        content = None
        if method not in {"GET", "DELETE"}:
            content = json.dumps(body or {}).encode()
            headers["Content-Type"] = "application/json"
        url = f"{self._service.url}{path.format_map(in_path)}{'?' if query else ''}{query}"
        # http or https (`service_profile`)
        return Request(url, data=content, headers=headers, method=method)  # noqa: S310

    def _refused(self, error: HTTPError, operation: ListedOperation) -> CommandError:
        with error:
            content = error.read()
        if error.headers.get_content_type() == _PROBLEM:
            problem: Mapping[str, Any] = json.loads(content)
            return CallRefusedError(problem, operation)
        return CommandError(
            f"{self._service.url} answered {error.code} {error.reason}: is it the address of a"
            " service?"
        )


def _text(value: Json) -> str | list[str]:
    if isinstance(value, list):
        return [str(each) for each in value]
    return str(value).lower() if isinstance(value, bool) else str(value)


def _reason(error: object) -> str:
    """Return a connection error without its number."""
    return (
        error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    ) or type(error).__name__
