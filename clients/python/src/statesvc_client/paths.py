"""Paths of calls that answer files."""

from urllib.parse import quote


def evidence_path(carrier_id: str, tracking_number: str) -> str:
    """Return the path of the calls for evidence."""
    return f"/v1/shipments/{quote(carrier_id, safe='')}/{quote(tracking_number, safe='')}/evidence"
