"""Check of how the Python that runs was built.

Without profile-guided optimisation, as pyenv compiles it, it needs a sixth more processor.
"""

import platform
import sys
import sysconfig
from typing import NamedTuple

from statesvc.health.finding import Finding, ok, warn


class Interpreter(NamedTuple):
    optimised: bool
    text: str


def interpreter() -> Interpreter:
    """Return the running interpreter by its build configuration, as the Makefile does.

    A distribution's interpreter below /usr is optimised; its configuration does not show it.
    """
    is_distributed = sys.base_prefix == "/usr"
    optimised = is_distributed or "--enable-optimizations" in (
        sysconfig.get_config_var("CONFIG_ARGS") or ""
    )
    build = (
        f"{'' if optimised else 'not '}optimised,"
        f" {'of the distribution' if is_distributed else sys.base_prefix}"
    )
    return Interpreter(
        optimised, f"{platform.python_implementation()} {platform.python_version()} ({build})"
    )


def check_interpreter(found: Interpreter | None = None) -> Finding:
    build = found or interpreter()
    return (
        ok("python", build.text)
        if build.optimised
        else warn("python", f"{build.text}: an optimised build needs a sixth less processor")
    )
