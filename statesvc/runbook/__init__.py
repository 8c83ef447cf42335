"""The pages of the runbook: docs/runbook in a checkout, package data in a wheel
(deploy/packaging/wheel_hook.py puts them here).
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Final

_PACKAGE: Final = Path(__file__).parent
_CHECKOUT: Final = _PACKAGE.parents[1] / "docs" / "runbook"
# The page that lists the others.
INDEX: Final = "README"


@cache
def pages() -> Mapping[str, Path]:
    """Return the pages by name, in order of name."""
    packaged = {path.stem: path for path in sorted(_PACKAGE.glob("*.md"))}
    return MappingProxyType(
        packaged or {path.stem: path for path in sorted(_CHECKOUT.glob("*.md"))}
    )


def title(name: str) -> str:
    """Return the heading of a page. Raises KeyError."""
    return read(name).partition("\n")[0].removeprefix("# ")


def read(name: str) -> str:
    """Return a page as Markdown. Raises KeyError."""
    return pages()[name].read_text("utf-8")
