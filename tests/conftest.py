"""The suite: its world of fixtures, registered once, and how a run reports."""

import gc
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import structlog

from statesvc.roles.shutdown import GC_THRESHOLDS
from statesvc.telemetry.logs import Output, pipeline
from tests.world import postgres

pytest_plugins = (
    "tests.world.own_processes",
    "tests.world.database",
    "tests.world.log_builder",
    "tests.world.worker_harness",
    "tests.world.api",
    "tests.world.console",
    "tests.world.body_archiver",
    "tests.world.object_store",
    "tests.world.process_cluster",
    "tests.world.shell",
    "tests.acceptance.service_maker",
)

hypothesis.settings.register_profile("default", deadline=None)
hypothesis.settings.register_profile("fast", deadline=None, max_examples=25)
hypothesis.settings.register_profile("fuzz", deadline=None, max_examples=20_000)
hypothesis.settings.load_profile(os.environ.get("STATESVC_HYPOTHESIS", "default"))


AT_RANDOM = ("tests/fuzz/", "tests/simulation/", "tests/statesvc/queue/test_model.py")
"""Folders where tests try at random for long."""


@pytest.fixture(autouse=True)
def _logging_of_a_service() -> Iterator[None]:
    """Log as a process of the service does, whatever the test before set up.

    structlog's own default draws exceptions for a terminal, which takes longer than
    the leases of some tests.
    """
    root = logging.getLogger()
    before = root.handlers[:], root.level, sys.excepthook, threading.excepthook, sys.unraisablehook
    structlog.configure(processors=pipeline("test", "json"), logger_factory=lambda *_: Output(None))
    yield
    logging.captureWarnings(capture=False)
    structlog.reset_defaults()
    root.handlers[:], root.level, sys.excepthook, threading.excepthook, sys.unraisablehook = before


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Any:
    """Collect tests without collecting garbage: what is collected is none."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid.startswith(AT_RANDOM):
            item.add_marker("slow")
        if item.get_closest_marker("soak"):
            item.add_marker(pytest.mark.timeout(0))
    items[:] = _spread(items, workers=int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))


def _spread(items: list[pytest.Item], *, workers: int) -> list[pytest.Item]:
    """Order tests so that each worker, which gets a stretch of them, begins with its part of
    those that take longest.

    Left in the order of the tree one worker would get all of them, and the run would end with
    one that takes a minute.
    """
    modules: dict[Path, list[pytest.Item]] = {}
    for item in items:
        modules.setdefault(item.path, []).append(item)
    is_long = [path for path in modules if "acceptance" in path.parts]
    others = [path for path in modules if "acceptance" not in path.parts]
    order = [
        path
        for worker in range(workers)
        for path in (*is_long[worker::workers], *others[worker::workers])
    ]
    return [item for path in order for item in modules[path]]


def pytest_collection_finish() -> None:
    """Search for garbage as a role does.

    What was collected stays to the end, and a search through all that the tests of a process hold
    takes longer than most of them.
    """
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)


class FailureNames:
    """Names each failure as it happens: a quiet run prints dots until its end."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        terminal = self._config.pluginmanager.get_plugin("terminalreporter")
        if report.failed and terminal is not None:
            crash = getattr(report.longrepr, "reprcrash", None)
            reason = crash.message.partition("\n")[0] if crash else ""
            terminal.ensure_newline()
            terminal.write_line(
                f"FAILED {report.nodeid} ({report.when}) {reason}".rstrip(), red=True
            )


def pytest_configure(config: pytest.Config) -> None:
    # a run in the background (`&`, nohup) ignores them, and so would each process that a test starts
    for number in (signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    if not hasattr(config, "workerinput"):
        postgres.claim_folder()
        _keep_files_in_memory()
        config.pluginmanager.register(FailureNames(config), "failure-names")


def _keep_files_in_memory() -> None:
    """Have tests make their files in memory where there is room: servers of their own wait for each
    of theirs to be on the disk.
    """
    root = postgres.root()
    if root is not None and not os.statvfs(root).f_flag & os.ST_NOEXEC:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(root))


def pytest_unconfigure(config: pytest.Config) -> None:
    gc.unfreeze()
    if not hasattr(config, "workerinput"):
        postgres.release_folder()
