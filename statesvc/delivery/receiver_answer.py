"""What came of one attempt at whatever kind of target, and the bounds that all of them keep."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from statesvc.delivery.outcome import AttemptOutcome

CONNECT_SECONDS: Final = 5.0
TOTAL_SECONDS: Final = 15.0
RESPONSE_BYTES_MAX: Final = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back. `response` is the beginning of the body, at most 20 kB; `headers` are those that hold no secret, at most 4 kB."""

    outcome: AttemptOutcome
    duration_seconds: float
    status_code: int | None = None
    """Of HTTP."""
    retry_after_seconds: float | None = None
    response: bytes = field(default=b"", repr=False)
    detail: str = ""
    """Of a broker: where the message is, or why it is not there. It holds nothing of the message."""
    headers: Sequence[tuple[str, str]] = field(default=(), repr=False)
