"""Bodies of form posts: carriers that push a document in a form field."""

from typing import Final
from urllib.parse import unquote_to_bytes

FIELDS_MAX: Final = 32


def form_fields(body: bytes) -> dict[bytes, bytes]:
    """Parse the decoded fields of `name=value&...`, the first value of each name.

    Empty for a body that is not a form.
    """
    if not body[:1].isalpha() or b"=" not in body:
        return {}
    found: dict[bytes, bytes] = {}
    for part in body.split(b"&", FIELDS_MAX)[:FIELDS_MAX]:
        name, equals, encoded = part.partition(b"=")
        if equals:
            found.setdefault(name, unquote_to_bytes(encoded.replace(b"+", b" ")))
    return found
