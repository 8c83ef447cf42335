"""Bodies of form posts: carriers that push a document in a field of one, next to fields that say nothing of a parcel."""

from typing import Final
from urllib.parse import unquote_to_bytes

FIELDS_MAX: Final = 32


def form_fields(body: bytes) -> dict[bytes, bytes]:
    """Parse the fields of `name=value&...` with their decoded values, the first one of a name; none for a body that is no form."""
    if not body[:1].isalpha() or b"=" not in body:
        return {}
    found: dict[bytes, bytes] = {}
    for part in body.split(b"&", FIELDS_MAX)[:FIELDS_MAX]:
        name, equals, encoded = part.partition(b"=")
        if equals:
            found.setdefault(name, unquote_to_bytes(encoded.replace(b"+", b" ")))
    return found
