"""The object store client: obstore, which is an extra and is imported with the
first use of a bucket.
"""

from functools import lru_cache
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from statesvc.settings.bucket import Bucket

if TYPE_CHECKING:
    from obstore.store import S3Store

_TRIES: Final = 2


class NoObjectStoreError(RuntimeError):
    """obstore is not installed."""

    def __str__(self) -> str:
        return "an s3:// place needs the extra: pip install 'statesvc[objectstore]'"


@lru_cache
def open_bucket(bucket: Bucket, *, timeout_seconds: int) -> "S3Store":
    """Return the bucket's store, without a request. Raises NoObjectStoreError.

    `timeout_seconds`: of one request with its body.
    """
    client()
    from obstore.store import S3Store  # noqa: PLC0415 - an extra

    return S3Store(bucket.name, prefix=bucket.prefix or None, **_options(bucket, timeout_seconds))


def _options(bucket: Bucket, timeout_seconds: int) -> dict[str, Any]:
    options: dict[str, Any] = {
        "region": bucket.region,
        "client_options": {
            "allow_http": bucket.endpoint.startswith("http://"),
            "timeout": f"{timeout_seconds}s",
        },
        "retry_config": {"max_retries": _TRIES},
    }
    return options | {"endpoint": bucket.endpoint} if bucket.endpoint else options


def client() -> ModuleType:
    """Import obstore. Raises NoObjectStoreError."""
    try:
        import obstore  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise NoObjectStoreError from error
    return obstore
