"""The URL of a receiver as it is stored and requested: path and query as they were
registered, byte for byte.

Pure.

A receiver may have signed its own URL, or read it by rules of its own: `%2F` is not
`/`, and `%7E` is not `~`.
"""

import re
from functools import lru_cache
from typing import Final
from urllib.parse import quote

from yarl import URL

_ORIGIN: Final = re.compile(r"[^:]*://[^/?#]*")
# Characters that stay as they are besides alphanumerics and `_.-~`. Brackets are no part of a
# target by RFC 9112; browsers send them, and servers take them.
_IN_REQUESTS: Final = "!#$%&'()*+,/:;=?@[]"


@lru_cache(maxsize=1024)
def webhook_url(text: str) -> URL:
    """Parse a URL without its fragment, percent-encoding where needed.

    Raises ValueError without a host.
    """
    parsed = URL(text)
    origin = _ORIGIN.match(text)
    if origin is None or not parsed.host:
        raise ValueError("no URL with a host")
    target = quote(text[origin.end() :].partition("#")[0], safe=_IN_REQUESTS)
    return URL(
        f"{parsed.origin()}{target if target.startswith('/') else '/' + target}", encoded=True
    )
