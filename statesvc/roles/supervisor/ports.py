"""Which ports the roles listen on."""

import socket
from collections.abc import Iterable


class PortTakenError(RuntimeError):
    """Somebody else listens there."""

    def __init__(self, host: str, port: int) -> None:
        super().__init__(f"port {port} on {host} is in use: choose another one with --port")


def is_free(host: str, port: int) -> bool:
    """Whether a server could listen there now."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def choose(host: str, first: int, names: Iterable[str]) -> dict[str, int]:
    """The first name gets `first`, each other the next number, or any free port where that is taken."""
    chosen: dict[str, int] = {}
    for offset, name in enumerate(names):
        wanted = first + offset if first else 0
        if 0 < wanted <= 65535 and is_free(host, wanted):
            chosen[name] = wanted
        elif offset == 0 and first:
            raise PortTakenError(host, first)
        else:
            chosen[name] = any_free(host)
    return chosen


def any_free(host: str) -> int:
    """A port that nobody listens on now."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.bind((host, 0))
        port: int = probe.getsockname()[1]
        return port
