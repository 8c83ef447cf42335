"""Guard of processes of ours: which tests may start them, and what they cost.

A test that starts some, or a broker, a browser or a PostgreSQL server of its own, takes the fixture
`own_processes`, mostly through the fixture that starts them; that marks it as slow. Any other test
fails where it starts one, so that `make test-fast` is what it says.
"""

import multiprocessing
import os
import subprocess
import sys
from multiprocessing.context import BaseContext, ForkServerContext, ForkServerProcess
from pathlib import Path
from typing import Any, Final

import pytest

FIXTURE: Final = "own_processes"
_LOADED: Final = (
    "pytest",
    "tests.world.forked",
    "statesvc.addons.archive.month_files",
    "statesvc.addons.verify.worker_pool",
    "statesvc.shipments.rebuild.folding",
    "statesvc.cli.role",
    # the last: what is loaded by then no collection visits again
    "tests.world.preloaded",
)
"""Modules that the process holds that others are forked from."""
_get_context: Final = multiprocessing.get_context
_start_program: Final = subprocess.Popen.__init__
_patches: Final = pytest.MonkeyPatch()


@pytest.fixture(scope="session")
def own_processes() -> None:
    """Allow the test to start processes."""


class _Guard:
    """Guard of the test that runs now."""

    def __init__(self) -> None:
        self.test: pytest.Item | None = None

    def check(self) -> None:
        if self.test is not None and self.test.get_closest_marker("slow") is None:
            pytest.fail(f"it starts a process, which slow tests do: it lacks the fixture {FIXTURE}")


_guard: Final = _Guard()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Any:
    _guard.test = None if item.get_closest_marker("soak") else item
    try:
        return (yield)
    finally:
        _guard.test = None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if FIXTURE in getattr(item, "fixturenames", ()):
            item.add_marker("slow")


def pytest_configure() -> None:
    _patches.setattr(multiprocessing, "get_context", _context)
    _patches.setattr(subprocess.Popen, "__init__", _start)


def pytest_unconfigure() -> None:
    _patches.undo()


def fork_server() -> ForkServerContext:
    """Start processes by forking one that has loaded the service.

    Its environment is that of the run, not that of the test.
    """
    context = _get_context("forkserver")
    context.set_forkserver_preload(list(_LOADED))
    return context


class _SpawnedProcess(ForkServerProcess):
    """Process with the environment of its parent, as a spawned one has it."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._environment = {**os.environ}

    def run(self) -> None:
        os.environ.clear()
        os.environ.update(self._environment)
        super().run()


class _SpawnContext(ForkServerContext):
    Process = _SpawnedProcess


def _context(method: str | None = None) -> BaseContext:
    """Fork children that the service spawns from the fork server: as separate, and without the
    second that loading takes.
    """
    if method == "spawn" and _guard.test is not None:
        _guard.check()
        context = _SpawnContext()
        context.set_forkserver_preload(list(_LOADED))
        return context
    return _get_context(method)


def _start(self: Any, args: Any, *rest: Any, **named: Any) -> None:
    program = args if isinstance(args, str | bytes | Path) else next(iter(args))
    if os.fspath(program) == sys.executable:
        _guard.check()
    _start_program(self, args, *rest, **named)
