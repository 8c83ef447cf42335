"""Context of a batch."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from events.carriers.carrier import Carrier
from events.crypto.keyring import Keyring
from statesvc.database.pool import Pool
from statesvc.log.history import History
from statesvc.reading.code_mapping import Mappings
from statesvc.telemetry.metrics import Telemetry
from statesvc.telemetry.minute_log import Burials, MinuteLog


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchContext:
    """Shared by all batches of a process."""

    pool: Pool
    keyring: Keyring
    carriers: Mapping[str, Carrier]
    telemetry: Telemetry
    worker: str
    mappings: Mappings = field(default_factory=Mappings)
    archive: History = field(default_factory=lambda: History(None))
    on_postponed: Callable[[], None] = lambda: None
    """Called when messages were postponed: they are available again soon."""
    on_trials: Callable[[], None] = lambda: None
    """Called after trials of a foreign candidate were written."""
    burials: Burials = field(init=False)
    fallbacks: MinuteLog = field(init=False)
    """Messages that a candidate version failed to read."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "fallbacks", MinuteLog("normalizer_fallback"))
        object.__setattr__(self, "burials", Burials(self.telemetry))
