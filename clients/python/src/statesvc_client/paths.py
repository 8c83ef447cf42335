"""Where the service is, and paths of calls that answer files."""

from urllib.parse import quote, urlsplit


def service_address(url: str) -> str:
    """Return the address without a slash at its end. Raises ValueError where it is none."""
    parts = urlsplit(url.strip())
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError(
            "url should be the address of a service with its scheme, such as https://statesvc.example.com"
        )
    if parts.path.rstrip("/").endswith("/v1"):
        raise ValueError(
            "url should end before /v1, such as https://statesvc.example.com: the client adds that itself"
        )
    return url.strip().rstrip("/")


def evidence_path(carrier_id: str, tracking_number: str) -> str:
    """Return the path of the calls for evidence."""
    return f"/v1/shipments/{quote(carrier_id, safe='')}/{quote(tracking_number, safe='')}/evidence"
