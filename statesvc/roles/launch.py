"""Starts a role in this process and returns its exit code."""

import asyncio
from collections.abc import Callable, Coroutine
from importlib import import_module
from typing import Any

import uvloop

from statesvc.roles.runtime import Launch, StoppedEarlyError
from statesvc.roles.usable_settings import require_usable
from statesvc.telemetry.logs import configure_logging, log_format


def run_role(launch: Launch) -> int:
    """Block until the role has ended. Raises SettingError before it begins."""
    require_usable(launch.settings, host=launch.host, port=launch.port)
    configure_logging(
        process=launch.name,
        output_format=log_format(launch.settings.telemetry),
        level=launch.settings.telemetry.log_level,
    )
    main = _main_of(launch)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        try:
            return runner.run(main(launch))
        except StoppedEarlyError:
            return 0


def _main_of(launch: Launch) -> Callable[[Launch], Coroutine[Any, Any, int]]:
    """Return the role's main function; each process loads only its own."""
    main: Callable[[Launch], Coroutine[Any, Any, int]] = import_module(
        f"statesvc.roles.{launch.role}_role"
    ).run
    return main
