"""The service that a shipper bought (`UPS Ground`, `FEDEX_2_DAY`), as carriers name it. Pure.

It is a short text of the carrier's own: a name where the carrier prints it in a single language,
else its code. It is stored in clear for ever, so any text that may have another meaning (a
sentence, an address, a telephone number) is no service.
"""

import re
from functools import lru_cache
from typing import Final

from events.spelling import spelled

SERVICE_CHARACTERS_MAX: Final = 80
SERVICE_RULE: Final = (
    f"should be the name or the code of a carrier's service, of at most {SERVICE_CHARACTERS_MAX}"
    " characters"
)

_SIGNS: Final = re.compile("[\u2122\u00ae\u00a9]")
# An address, or enough digits for a telephone's.
_OTHER: Final = re.compile(r"[@\x00-\x1f\x7f]|[0-9](?:[\s()./-]*[0-9]){6}")
_NOTHING: Final = frozenset(
    {"", "-", "null", "none", "n/a", "na", "string", "unknown", "undefined", "other", "unspecified"}
)


@lru_cache(maxsize=4096)
def service_name(printed: str | None) -> str | None:
    """Return a service as recorded: blanks collapsed, trade marks removed.

    None for a placeholder, and for texts that name no service.
    """
    if printed is None or len(printed) > 4 * SERVICE_CHARACTERS_MAX:
        return None
    name = " ".join(_SIGNS.sub("", printed).split())
    if (
        len(name) > SERVICE_CHARACTERS_MAX
        or _OTHER.search(name)
        or spelled(name).partition(" - ")[0] in _NOTHING
    ):
        return None
    return name


def service_key(name: str | None) -> str | None:
    """Return the name of a service as it is compared: case, width and blanks do not matter."""
    return None if name is None else spelled(name)
