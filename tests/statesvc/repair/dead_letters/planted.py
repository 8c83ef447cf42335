"""The shop's carrier, whose normalizer fails on some bodies, and the same carrier with
its normalizer mended.
"""

from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from events.carriers.carrier import Carrier
from events.event import Normalized
from tests.world.worker_harness import ACME, normalize, push_body


def mended(body: bytes, received_at: datetime) -> Normalized:
    """Read what `normalize` fails on, unless it is hopeless, and take rejected members for
    notes.
    """
    if body.startswith(b"defect hopeless"):
        raise KeyError("a value of the body")
    return replace(normalize(body.removeprefix(b"defect "), received_at), rejections=())


MENDED: Final[Carrier] = replace(ACME, normalizers={"1": mended})


def unread(number: int, *, hopeless: bool = False, **more: Any) -> bytes:
    """Build a push that the normalizer fails on, and that the mended one reads (a
    hopeless one: does not).
    """
    event = {"number": f"N{number}", "status": "in_transit", **more}
    return b"defect " + (b"hopeless " if hopeless else b"") + push_body(event, envelope=number)
