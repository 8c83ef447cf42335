"""Priority of a story over other work of its machine, so that its times are about the service."""

import os
from pathlib import Path

NICENESS = os.environ.get("STATESVC_SOAK_NICENESS")
"""Below 0: before other sessions (needs root). By default as they are."""


def outrank_neighbours(pid: int | None = None) -> None:
    """Give the session of this process, or of another, the niceness."""
    # where the kernel groups by session, all roles of a story share what a single neighbour gets
    session = Path(f"/proc/{pid or os.getpid()}/autogroup")
    if NICENESS is not None and session.exists():
        session.write_text(NICENESS)
