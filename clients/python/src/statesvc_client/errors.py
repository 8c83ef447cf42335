"""Exceptions by status, each with the problem that the service stated (RFC 9457)."""

from collections.abc import Mapping, Sequence
from typing import Any


class ApiError(Exception):
    """The service refused a call. `code` is stable and for programs, `detail` is for people.

    `errors` names each flaw of a request (`pointer`, `detail`); `members` are further members of
    the problem. `retry_after` is in seconds, where the service named a time.
    """

    def __init__(
        self, status: int, problem: Mapping[str, Any], *, retry_after: float | None = None
    ) -> None:
        self.status = status
        self.code: str = problem.get("code", "unknown")
        self.title: str = problem.get("title", "")
        self.detail: str = problem.get("detail", "")
        self.errors: Sequence[Mapping[str, Any]] = problem.get("errors", ())
        self.members = {name: value for name, value in problem.items() if name not in _KNOWN}
        self.retry_after = retry_after
        flaws = "".join(
            f"; {flaw.get('pointer', '')} {flaw.get('detail', '')}" for flaw in self.errors
        )
        super().__init__(f"{status} {self.code}: {self.detail or self.title}{flaws}")


_KNOWN = frozenset({"type", "title", "status", "code", "detail", "errors"})


class BadRequestError(ApiError):
    """400: the request is malformed, or a cursor belongs to another list."""


class UnauthorizedError(ApiError):
    """401: the key is missing, revoked or wrong."""


class ForbiddenError(ApiError):
    """403: the key lacks a scope; `members["required_scope"]` names it."""


class NotFoundError(ApiError):
    """404: there is no such thing."""


class ConflictError(ApiError):
    """409: the request contradicts the present state."""


class CursorLostError(ApiError):
    """410: the log was restored to before this cursor; go on after `members["go_on_after"]`."""


class UnprocessableError(ApiError):
    """422: the request breaks the contract; `errors` says where."""


class TooManyRequestsError(ApiError):
    """429: the key asks for more than its share, even after the retries."""


class ServerError(ApiError):
    """5xx: a defect of the service."""


class UnavailableError(ServerError):
    """502, 503 or 504, even after the retries."""


_BY_STATUS: Mapping[int, type[ApiError]] = {
    400: BadRequestError,
    401: UnauthorizedError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    410: CursorLostError,
    422: UnprocessableError,
    429: TooManyRequestsError,
    502: UnavailableError,
    503: UnavailableError,
    504: UnavailableError,
}


def error_of(status: int, problem: object, *, retry_after: float | None = None) -> ApiError:
    """Return the exception for an answer; `problem` is its body as JSON, or None where it was none
    (a proxy's page).
    """
    kind = _BY_STATUS.get(status, ServerError if status >= 500 else ApiError)
    return kind(status, problem if isinstance(problem, Mapping) else {}, retry_after=retry_after)
