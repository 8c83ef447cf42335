"""The role `api`: answers every call.

It takes stray webhooks as well: several carriers never repeat after a 404. With a socket to the
`ingress` of its machine it hands such a connection over instead.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

from events.carriers import CARRIERS
from statesvc import __version__
from statesvc.api.call_examples import call_examples
from statesvc.api.computing import ComputingProcesses
from statesvc.api.event_documents import hooks
from statesvc.api.personal_reads import PersonalReads
from statesvc.api.routes import refusing_routes
from statesvc.api.routes import routes as api_routes
from statesvc.api.served_context import served_context
from statesvc.api.submission.routes import routes as submission_routes
from statesvc.background.process_pool import ProcessPool
from statesvc.database.pool import ReadablePool
from statesvc.database.wakeups.wakeup import SEALED
from statesvc.delivery.targets import Targets
from statesvc.files.archive_folder import archive_folder
from statesvc.health.database_gauges import DatabaseGauges
from statesvc.http.documentation import documentation_routes
from statesvc.http.health import health_routes
from statesvc.http.keys.key_limits import KeyLimits
from statesvc.http.keys.signed_token import TokenSigner
from statesvc.http.served_calls import ServedCalls
from statesvc.log.history import History
from statesvc.log.tombstones import tombstones_of
from statesvc.queue.depths import DepthGauges
from statesvc.roles.connection_limits import api_limits, misrouted_limits, reader_limits
from statesvc.roles.http_server import api_keys, open_ingress, serve, server_component
from statesvc.roles.runtime import Launch, Runtime, open_runtime, pool_of
from statesvc.roles.shared_port import SharedPort
from statesvc.roles.shutdown import ShutdownTimes, run_until_stopped
from statesvc.seams import parts


async def run(launch: Launch) -> int:
    """Run until it is asked to stop; return the exit code."""
    settings = launch.settings
    grace_seconds = settings.http.grace_seconds
    allowed = settings.notifier.subscriber_allow
    tombstones = tombstones_of(settings)
    async with (
        # whoever follows the sealed log here hears of it; the waker sends over the same connection
        open_runtime(launch, api_limits(settings), channels=[SEALED]) as base,
        AsyncExitStack() as stack,
    ):
        ingress_pool = await stack.enter_async_context(
            pool_of(launch, base.dsns, name="statesvc ingress", limits=misrouted_limits(settings))
        )
        base.telemetry.observe_pools({"api": base.pool, "ingress": ingress_pool})
        readers = await stack.enter_async_context(
            pool_of(
                launch,
                base.dsns,
                name="statesvc reader",
                limits=reader_limits(settings),
                writes=False,
            )
        )
        readable = ReadablePool(base.pool, readers)
        targets = await stack.enter_async_context(
            Targets(
                allowed=allowed,
                source=settings.notifier.event_source,
                proxy=settings.notifier.proxy,
            )
        )
        keys = api_keys(launch, base.pool)
        ingress = await stack.enter_async_context(
            open_ingress(launch, base, ingress_pool, keys=keys)
        )
        log_archive = History(archive_folder(settings))
        readings = PersonalReads(base.pool)
        readings.start()
        stack.push_async_callback(readings.close)
        lasting = [
            made(launch, base, keys, lambda: ingress.memory.is_under_pressure)
            for made in parts("lasting_calls")
        ]
        processes = ProcessPool(
            [sys.executable, "-m", "statesvc.roles.computing_process"],
            processes_max=min(settings.api.computing_processes, base.plan.besides),
            waiting_max=settings.api.computing_waiting_max,
        )
        stack.push_async_callback(processes.close)
        limits = KeyLimits(
            calls_max=settings.api.calls_per_key_max,
            computed_max=settings.api.computed_per_key_max,
            calls_per_second=settings.api.calls_per_key_per_second,
            refused=base.refusals.count,
        )

        def drain() -> None:
            base.readiness.drain()
            for _, component in lasting:
                # now, not when the server stops: their clients come back elsewhere
                component.stop()

        context = served_context(
            pool=base.pool,
            keyring=base.keyring,
            waker=base.waker,
            readings=readings,
            archive=archive_folder(settings),
            backup_days=settings.keys.backup_days,
            tombstones=tombstones,
            targets=targets,
            allowed=allowed,
            computing=ComputingProcesses(processes),
            carriers=settings.in_account_zones(CARRIERS),
            console_url=settings.http.console_url,
        )
        signer = TokenSigner(base.keyring.token_key)
        calls = [
            *ingress.routes,
            *submission_routes(
                pool=base.pool,
                keyring=base.keyring,
                waker=base.waker,
                writer=launch.worker_id,
                archive=log_archive,
            ),
            *api_routes(context),
            *(route for lasting_routes, _ in lasting for route in lasting_routes),
        ]
        base.metrics.sample_first(sampling(launch, base))
        calls += health_routes(base.readiness)
        documentation = documentation_routes(
            calls, version=__version__, hooks=hooks(), examples=call_examples
        )
        served = ServedCalls(
            calls=calls,
            pool=base.pool,
            readable=readable,
            keyring=base.keyring,
            keys=keys,
            readable_keys=api_keys(launch, readable),
            signer=signer,
            limits=limits,
        )
        pages = [route for made in parts("pages") for route in made(served)]
        shared = None if launch.socket is None else SharedPort(launch.socket, is_ingress=False)
        sharing = None if shared is None else shared.accepted
        server = await serve(
            launch,
            base,
            keys=keys,
            routes=[*calls, *documentation, *pages, *refusing_routes()],
            limits=limits,
            sharing=sharing,
        )
        stack.push_async_callback(server.stop)
        return await run_until_stopped(
            [
                server_component(server),
                *(component for _, component in lasting),
                *([] if shared is None else [shared.part(server)]),
            ],
            helpers=[*base.helpers, *ingress.group_commit.tasks],
            signals=base.signals,
            drain=drain,
            times=ShutdownTimes(
                grace_seconds=grace_seconds, drain_seconds=settings.http.drain_seconds
            ),
        )


def sampling(launch: Launch, base: Runtime) -> Callable[[], Awaitable[None]]:
    """Return the function that brings the metrics of the database up to date at a scrape; they
    show the last reading.
    """
    database, archive = launch.settings.database, archive_folder(launch.settings)
    volumes = {"data": database.data_dir} if database.database_url is None else {}
    depths = DepthGauges(base.pool)
    gauges = DatabaseGauges(
        base.pool, volumes={**volumes, "archive": archive} if isinstance(archive, Path) else volumes
    )
    depths.report_to(base.telemetry)
    gauges.report_to(base.telemetry)

    async def sample() -> None:
        await asyncio.gather(depths.sample(), gauges.sample())

    return sample
