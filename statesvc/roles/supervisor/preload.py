"""Preloading before the supervisor forks: all that roles load, once, so that they share it."""

import gc
import sys
from importlib import import_module
from typing import Final

from statesvc.seams import named_parts, parts

PRELOADED: Final = tuple(
    f"statesvc.roles.{role}_role" for role in ("ingress", "api", "worker", "notifier")
)


def preload() -> None:
    """Load all modules, and freeze them: a collection's visit would copy their pages."""
    for module in PRELOADED:
        import_module(module)
    for seam in ("operations", "pages", "lasting_calls", "targets", "findings"):
        tuple(parts(seam))
    for seam in ("jobs", "computations"):
        tuple(named_parts(seam))
    _use_once()
    gc.collect()
    # it holds on to names: each that a role has to put in place of another would be written to as
    # well
    sys._clear_type_cache()  # noqa: SLF001 - Python has no other name for it
    gc.freeze()


def _use_once() -> None:
    """Make caches once in shared memory."""
    from psycopg.pq import PGconn  # noqa: PLC0415 - loaded where all the rest is

    from events.crypto.sealing import SealingKey  # noqa: PLC0415 - loaded where all the rest is
    from events.parsing.whereabouts import load_tables  # noqa: PLC0415
    from statesvc.http.health import shipped_migrations  # noqa: PLC0415
    from statesvc.telemetry.tracing import detected_resource  # noqa: PLC0415

    SealingKey(bytes(32)).seal(b"", context=b"")
    # libpq brings its own OpenSSL
    PGconn.connect(b"host=/nonexistent").encrypt_password(b"-", b"-", b"scram-sha-256")
    "localhost".encode("idna")
    load_tables()
    for warm_up in parts("warm_up"):
        warm_up()
    shipped_migrations()
    detected_resource()
