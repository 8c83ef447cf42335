import logging
import sys
import threading
from collections.abc import Iterator

import pytest
import structlog


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    """Commands set up the logging of their process, which here is that of all tests."""
    root = logging.getLogger()
    before = root.handlers[:], root.level, sys.excepthook, threading.excepthook, sys.unraisablehook
    yield
    logging.captureWarnings(capture=False)
    structlog.reset_defaults()
    root.handlers[:], root.level, sys.excepthook, threading.excepthook, sys.unraisablehook = before
