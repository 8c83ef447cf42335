"""Starts one role in this process and gives its exit code."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, assert_never

import uvloop

from statesvc.roles.runtime import Launch, Role, StoppedEarlyError
from statesvc.roles.usable_settings import require_usable
from statesvc.telemetry.logs import configure_logging, log_format


def run_role(launch: Launch) -> int:
    """Blocks until the role has ended. Raises SettingError before it begins."""
    require_usable(launch.settings, host=launch.host)
    configure_logging(process=launch.role, output_format=log_format(launch.settings.telemetry), level=launch.settings.telemetry.log_level)
    main = _main_of(launch.role)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        try:
            return runner.run(main(launch))
        except StoppedEarlyError:
            return 0


def _main_of(role: Role) -> Callable[[Launch], Coroutine[Any, Any, int]]:
    """Each role loads only what it needs."""
    match role:
        case "ingress":
            from statesvc.roles import ingress_role as ingress  # noqa: PLC0415

            return ingress.run
        case "api":
            from statesvc.roles import api_role as api  # noqa: PLC0415

            return api.run
        case "worker":
            from statesvc.roles import worker_role as worker  # noqa: PLC0415

            return worker.run
        case "notifier":
            from statesvc.roles import notifier_role as notifier  # noqa: PLC0415

            return notifier.run
        case "sealer":
            from statesvc.roles import sealer_role as sealer  # noqa: PLC0415

            return sealer.run
        case _:
            assert_never(role)
