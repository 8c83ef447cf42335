"""Client of statesvc: where parcels are, how they got there, and who is told.

from statesvc_client import Client

with Client("https://statesvc.example.com", key="...") as client:
    print(client.shipments.get("ups", "1Z999AA10123456784").status)
"""

from typing import TYPE_CHECKING, Any

from statesvc_client.errors import (
    ApiError,
    BadRequestError,
    ConflictError,
    CursorLostError,
    ForbiddenError,
    NotFoundError,
    ServerError,
    TooManyRequestsError,
    UnauthorizedError,
    UnavailableError,
    UnprocessableError,
)
from statesvc_client.signatures import InvalidSignatureError, verify

if TYPE_CHECKING:
    from statesvc_client.aio.client import AsyncClient
    from statesvc_client.sync.client import Client

__all__ = [
    "ApiError",
    "AsyncClient",
    "BadRequestError",
    "Client",
    "ConflictError",
    "CursorLostError",
    "ForbiddenError",
    "InvalidSignatureError",
    "NotFoundError",
    "ServerError",
    "TooManyRequestsError",
    "UnauthorizedError",
    "UnavailableError",
    "UnprocessableError",
    "verify",
]


def __getattr__(name: str) -> Any:
    """Import a client when it is asked for: who only verifies signatures needs neither httpx nor
    models.
    """
    if name == "Client":
        from statesvc_client.sync.client import Client

        return Client
    if name == "AsyncClient":
        from statesvc_client.aio.client import AsyncClient

        return AsyncClient
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
