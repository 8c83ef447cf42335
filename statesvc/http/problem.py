"""Every HTTP status code of this service, and its errors as RFC 9457 problems.

A problem's `code` is stable and for programs; its `detail` is for people and never holds personal
data, a secret, or a stack trace.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus
from typing import Any, Final

import orjson
from aiohttp import hdrs, web

OK: Final = int(HTTPStatus.OK)
CREATED: Final = int(HTTPStatus.CREATED)
ACCEPTED: Final = int(HTTPStatus.ACCEPTED)
NO_CONTENT: Final = int(HTTPStatus.NO_CONTENT)
SEE_OTHER: Final = int(HTTPStatus.SEE_OTHER)
NOT_MODIFIED: Final = int(HTTPStatus.NOT_MODIFIED)
NOT_FOUND: Final = int(HTTPStatus.NOT_FOUND)
UNAUTHORIZED: Final = int(HTTPStatus.UNAUTHORIZED)

CONTENT_TYPE: Final = "application/problem+json"
RETRY_AFTER_SECONDS: Final = 2


class Code(StrEnum):
    """Error code, for programs.

    Only ever grows; `python -m tests.errors_page` writes docs/errors.md.
    """

    BAD_REQUEST = "bad_request"
    INVALID_CURSOR = "invalid_cursor"
    CURSOR_LOST = "cursor_lost"
    UNAUTHENTICATED = "unauthenticated"
    BAD_SIGNATURE = "bad_signature"
    UNSIGNED_CARRIER = "unsigned_carrier"
    MISSING_SCOPE = "missing_scope"
    NOT_FOUND = "not_found"
    UNKNOWN_CARRIER = "unknown_carrier"
    METHOD_NOT_ALLOWED = "method_not_allowed"
    REQUEST_TIMEOUT = "request_timeout"
    CONFLICT = "conflict"
    TOO_LARGE = "too_large"
    UNSUPPORTED_MEDIA_TYPE = "unsupported_media_type"
    UNSUPPORTED_CONTENT_ENCODING = "unsupported_content_encoding"
    INVALID_REQUEST = "invalid_request"
    TOO_MANY = "too_many"
    TOO_MANY_REQUESTS = "too_many_requests"
    INTERNAL_ERROR = "internal_error"
    DATABASE_UNAVAILABLE = "database_unavailable"
    API_UNAVAILABLE = "api_unavailable"
    CELL_UNAVAILABLE = "cell_unavailable"
    CELL_UNNAMED = "cell_unnamed"
    BODY_UNAVAILABLE = "body_unavailable"
    LOG_UNAVAILABLE = "log_unavailable"
    ADDON_MISSING = "addon_missing"
    NOT_DURABLE = "not_durable"
    TOMBSTONE_UNAVAILABLE = "tombstone_unavailable"
    OVERLOADED = "overloaded"
    STORAGE_LOW = "storage_low"
    SIGNING_KEYS_UNAVAILABLE = "signing_keys_unavailable"
    TIMED_OUT = "timed_out"
    HELD = "held"
    NOT_SEALED = "not_sealed"
    NOT_READY = "not_ready"


@dataclass(frozen=True, slots=True)
class ProblemKind:
    """A code's status, its constant title, and the caller's remedy."""

    status: HTTPStatus
    title: str
    remedy: str


PROBLEM_KINDS: Final[Mapping[Code, ProblemKind]] = {
    Code.BAD_REQUEST: ProblemKind(
        HTTPStatus.BAD_REQUEST,
        "The request is malformed",
        "Send well-formed HTTP; `detail` names the flaw.",
    ),
    Code.INVALID_CURSOR: ProblemKind(
        HTTPStatus.BAD_REQUEST,
        "The cursor does not belong to this list and filter",
        "Send `next_cursor` unchanged with the same filter, or start without a cursor.",
    ),
    Code.CURSOR_LOST: ProblemKind(
        HTTPStatus.GONE,
        "The log was restored to before this cursor",
        "Continue at the cursor in `go_on_after`; discard data from the lost entries.",
    ),
    Code.UNAUTHENTICATED: ProblemKind(
        HTTPStatus.UNAUTHORIZED,
        "A valid API key is required",
        "Send `Authorization: Bearer <key>` with a live key.",
    ),
    Code.BAD_SIGNATURE: ProblemKind(
        HTTPStatus.UNAUTHORIZED,
        "The webhook is not authenticated",
        "Sign the raw bytes by the carrier's scheme with a configured secret.",
    ),
    Code.UNSIGNED_CARRIER: ProblemKind(
        HTTPStatus.UNAUTHORIZED,
        "No webhook secret is set for this carrier",
        "Set the carrier's secret (docs/authentication.md), or send a key with scope `ingest`.",
    ),
    Code.MISSING_SCOPE: ProblemKind(
        HTTPStatus.FORBIDDEN, "The API key lacks a scope", "Use a key with `required_scope`."
    ),
    Code.NOT_FOUND: ProblemKind(
        HTTPStatus.NOT_FOUND,
        "There is no such thing",
        "Check path and id; a shipment exists from its first event on.",
    ),
    Code.UNKNOWN_CARRIER: ProblemKind(
        HTTPStatus.NOT_FOUND,
        "There is no such carrier",
        "Use a carrier_id of `statesvc carriers`.",
    ),
    Code.METHOD_NOT_ALLOWED: ProblemKind(
        HTTPStatus.METHOD_NOT_ALLOWED,
        "The path does not take this method",
        "Use a method of the header `Allow`.",
    ),
    Code.REQUEST_TIMEOUT: ProblemKind(
        HTTPStatus.REQUEST_TIMEOUT,
        "The request body came too slowly",
        "Send the whole body at once.",
    ),
    Code.CONFLICT: ProblemKind(
        HTTPStatus.CONFLICT,
        "The request contradicts the present state",
        "Read the present state first; repeating the request does not help.",
    ),
    Code.NOT_SEALED: ProblemKind(
        HTTPStatus.CONFLICT,
        "No checkpoint covers this yet",
        "Retry after a second; the next checkpoint covers it.",
    ),
    Code.TOO_LARGE: ProblemKind(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "The body is too large", "Send less at a time."
    ),
    Code.UNSUPPORTED_MEDIA_TYPE: ProblemKind(
        HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        "The body has another media type than the call takes",
        "Send a media type of the call.",
    ),
    Code.UNSUPPORTED_CONTENT_ENCODING: ProblemKind(
        HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        "The body is compressed in another way than the call takes",
        "Send it uncompressed; webhooks may use gzip.",
    ),
    Code.INVALID_REQUEST: ProblemKind(
        HTTPStatus.UNPROCESSABLE_ENTITY,
        "The request breaks the contract",
        "Correct the flaws in `errors`.",
    ),
    Code.TOO_MANY: ProblemKind(
        HTTPStatus.UNPROCESSABLE_ENTITY,
        "Too many match",
        "Give more characters of the number, or use another filter.",
    ),
    Code.TOO_MANY_REQUESTS: ProblemKind(
        HTTPStatus.TOO_MANY_REQUESTS, "Too many requests", "Wait for `Retry-After`."
    ),
    Code.INTERNAL_ERROR: ProblemKind(
        HTTPStatus.INTERNAL_SERVER_ERROR,
        "A defect of this service",
        "Retry later; the service's log has the reason.",
    ),
    Code.DATABASE_UNAVAILABLE: ProblemKind(
        HTTPStatus.SERVICE_UNAVAILABLE,
        "The database does not answer",
        "Wait for `Retry-After`; a repeated webhook is recognised.",
    ),
    Code.CELL_UNAVAILABLE: ProblemKind(
        HTTPStatus.SERVICE_UNAVAILABLE,
        "The installation does not answer",
        "Try again after `Retry-After`; carriers of other installations are not affected.",
    ),
    Code.CELL_UNNAMED: ProblemKind(
        HTTPStatus.UNPROCESSABLE_ENTITY,
        "The call names no installation",
        "Call the installation at its own address.",
    ),
    Code.API_UNAVAILABLE: ProblemKind(
        HTTPStatus.SERVICE_UNAVAILABLE,
        "The process that answers the API is not there",
        "Wait for `Retry-After`.",
    ),
    Code.BODY_UNAVAILABLE: ProblemKind(
        HTTPStatus.SERVICE_UNAVAILABLE,
        "The archived body cannot be read now",
        "Retry later; the service's log has the error.",
    ),
    Code.LOG_UNAVAILABLE: ProblemKind(
        HTTPStatus.SERVICE_UNAVAILABLE,
        "The archived part of the log cannot be read now",
        "Retry later; the service's log has the error.",
    ),
    Code.ADDON_MISSING: ProblemKind(
        HTTPStatus.SERVICE_UNAVAILABLE,
        "This installation leaves out an add-on that the answer needs",
        "`detail` names the add-on; operators enable it in STATESVC_ADDONS.",
    ),
    Code.NOT_DURABLE: ProblemKind(
        HTTPStatus.SERVICE_UNAVAILABLE,
        "The message could not be made durable",
        "Send it again; a retry is recognised.",
    ),
    Code.TOMBSTONE_UNAVAILABLE: ProblemKind(
        HTTPStatus.SERVICE_UNAVAILABLE,
        "What must survive a restore cannot be stored outside the database now",
        "Retry when the tombstone store is writable; no data was erased.",
    ),
    Code.OVERLOADED: ProblemKind(
        HTTPStatus.SERVICE_UNAVAILABLE, "Too much is in flight", "Wait for `Retry-After`."
    ),
    Code.STORAGE_LOW: ProblemKind(
        HTTPStatus.SERVICE_UNAVAILABLE,
        "The disk is nearly full",
        "Wait for `Retry-After`; operators make room.",
    ),
    Code.SIGNING_KEYS_UNAVAILABLE: ProblemKind(
        HTTPStatus.SERVICE_UNAVAILABLE,
        "The carrier's public keys can't be fetched",
        "Wait for `Retry-After`.",
    ),
    Code.TIMED_OUT: ProblemKind(
        HTTPStatus.SERVICE_UNAVAILABLE, "The answer took too long", "Retry, or request less."
    ),
    Code.HELD: ProblemKind(
        HTTPStatus.SERVICE_UNAVAILABLE,
        "The carrier is on hold",
        "Send it again after the carrier's release; it had no effect.",
    ),
    Code.NOT_READY: ProblemKind(
        HTTPStatus.SERVICE_UNAVAILABLE,
        "The process is not ready",
        "Use another process: this is starting, stopping or without database.",
    ),
}


@dataclass(frozen=True, slots=True)
class Violation:
    """One thing wrong with a request. `pointer`: `/body/url`, `/query/limit`."""

    pointer: str
    detail: str


PROBLEM: Final = web.ResponseKey("problem", str)


class Problem(Exception):  # noqa: N818 - the RFC's word
    """Raise it in a handler; it becomes the answer.

    `members` are extension members; a 503 gets `Retry-After` by itself.
    """

    def __init__(
        self,
        code: Code,
        detail: str,
        *,
        violations: Sequence[Violation] = (),
        headers: Mapping[str, str] | None = None,
        members: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.violations = tuple(violations)
        self.headers = dict(headers or {})
        self.members = dict(members or {})

    @property
    def status(self) -> int:
        return int(PROBLEM_KINDS[self.code].status)

    def document(self) -> dict[str, Any]:
        """Return the members of the JSON object.

        `type` leads to the code in the service's own documentation.
        """
        document: dict[str, Any] = {
            "type": f"/docs#problem-{self.code.value}",
            "title": PROBLEM_KINDS[self.code].title,
            "status": self.status,
            "code": self.code.value,
            "detail": self.detail,
            **self.members,
        }
        if self.violations:
            document["errors"] = [
                {"pointer": violation.pointer, "detail": violation.detail}
                for violation in self.violations
            ]
        return document

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle it, for the way from a process that computes."""
        return _problem, (self.code, self.detail, self.violations, self.headers, self.members)

    def response(self) -> web.Response:
        headers = dict(self.headers)
        if self.status == HTTPStatus.SERVICE_UNAVAILABLE:
            headers.setdefault(hdrs.RETRY_AFTER, str(RETRY_AFTER_SECONDS))
        response = web.Response(
            body=orjson.dumps(self.document()),
            status=self.status,
            content_type=CONTENT_TYPE,
            headers=headers,
        )
        response[PROBLEM] = self.code.value
        return response


def _problem(
    code: Code,
    detail: str,
    violations: Sequence[Violation],
    headers: Mapping[str, str],
    members: Mapping[str, Any],
) -> Problem:
    return Problem(code, detail, violations=violations, headers=headers, members=members)


_AIOHTTP: Final[Mapping[int, tuple[Code, str]]] = {
    HTTPStatus.NOT_FOUND: (Code.NOT_FOUND, "no such path; /docs lists all calls"),
    HTTPStatus.REQUEST_TIMEOUT: (Code.REQUEST_TIMEOUT, "the body did not arrive in time"),
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: (
        Code.TOO_LARGE,
        "the body is larger than this call takes",
    ),
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: (
        Code.UNSUPPORTED_MEDIA_TYPE,
        "the body has another media type than this call takes",
    ),
}


def from_aiohttp(error: web.HTTPException) -> Problem | None:
    """Convert an aiohttp error to a problem; None for a redirect."""
    if error.status < HTTPStatus.BAD_REQUEST:
        return None
    if isinstance(error, web.HTTPMethodNotAllowed):
        allowed = ", ".join(sorted(error.allowed_methods))
        return Problem(
            Code.METHOD_NOT_ALLOWED,
            f"{error.method} is not possible here, but {allowed}",
            headers={hdrs.ALLOW: allowed},
        )
    server_side = error.status >= HTTPStatus.INTERNAL_SERVER_ERROR
    fallback = (Code.INTERNAL_ERROR, "the request failed here; the log has the reason")
    code, detail = _AIOHTTP.get(
        error.status,
        fallback if server_side else (Code.BAD_REQUEST, "the request cannot be understood"),
    )
    return Problem(code, detail)
