"""Why a transfer does not begin, or stops: in words for the person at the terminal."""


class ShovelError(ValueError):
    """Its text says what is wrong and what to do. Nothing of the batch at hand was taken from the source."""


class SourceLostError(OSError):
    """The connection to the broker ended; what was not acknowledged waits there."""
