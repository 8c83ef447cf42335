"""An event as the log holds it, as far as state is made of it.

Whole logs are read here, so only the named fields become objects. Fields of a later version are passed over; words stay text, because
a later version may have words that are not known here.
"""

from typing import Final

from msgspec import Struct
from msgspec.json import Decoder


class LoggedRaw(Struct, frozen=True, gc=False):
    """The carrier's own words."""

    type: str | None = None
    code: str | None = None


class LoggedFact(Struct, frozen=True, gc=False, kw_only=True):
    """What the fold reads."""

    event_id: str
    kind: str
    occurred_at: str
    time_precision: str
    carrier_id: str
    raw: LoggedRaw
    status: str | None = None
    reason: str | None = None
    corrects: str | None = None
    anchor: str | None = None
    stamp: str | None = None
    estimated_delivery: str | None = None
    signer_digest: str | None = None
    version: int = 0


class LoggedEvent(LoggedFact, frozen=True, gc=False, kw_only=True):
    """What a shipment's row needs beside that."""

    version: int
    recorded_at: str
    tracking_number: str
    discriminator: str = ""


decode_fact: Final = Decoder(LoggedFact).decode
decode_event: Final = Decoder(LoggedEvent).decode
