"""Forms in which documents are handed out."""

from collections.abc import Container
from typing import Final

# The end of a file's name, and its media type.
FORMS: Final = {
    ".json": "application/json",
    ".html": "text/html",
    ".pdf": "application/pdf",
    ".zip": "application/zip",
}


def preferred(accept: str, kinds: Container[str]) -> str | None:
    """Return the first of these media types by the weights of `Accept`; None: it names none."""
    weighed = []
    for index, part in enumerate(accept.split(",")):
        kind, _, parameter = part.strip().partition(";")
        try:
            weight = (
                float(parameter.strip().removeprefix("q="))
                if parameter.strip().startswith("q=")
                else 1.0
            )
        except ValueError:
            weight = 0.0
        if kind.strip().lower() in kinds and weight > 0:
            weighed.append((-weight, index, kind.strip().lower()))
    return min(weighed)[2] if weighed else None
