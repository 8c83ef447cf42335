"""Read answers of the service."""

import json
from typing import TypeVar

import httpx

from statesvc_client.core.models.problem import Problem
from statesvc_client.errors import ApiError, error_of
from statesvc_client.retries import retry_after

T = TypeVar("T")


def error_in(response: httpx.Response) -> ApiError | None:
    """Return the exception that an answer whose body was read stands for, None for 1xx to 3xx."""
    if response.status_code < 400:
        return None
    try:
        problem = json.loads(response.content)
    except ValueError:
        # not ours: a proxy's page
        problem = None
    return error_of(response.status_code, problem, retry_after=retry_after(response))


def value(parsed: T | Problem | None) -> T:
    """Narrow what a generated call returned: problems were raised before it parsed them."""
    if parsed is None or isinstance(parsed, Problem):
        raise TypeError("the service answered something that its document does not have")
    return parsed
