"""API calls that a command makes in its own process, without a running service.

They open only the resources of the operation. The caller may do all, because a user of this command
can read the database anyway; the log names `cli:<account>`.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import psycopg
from psycopg import AsyncConnection
from psycopg.pq import TransactionStatus

from events.carriers import CARRIERS
from events.crypto.keyring import Keyring
from statesvc.api.operation_context import Context
from statesvc.api.personal_reads import PersonalReads
from statesvc.cli.api_calls import CallRefusedError, Calls, File, Json
from statesvc.cli.command_error import CommandError
from statesvc.cli.explanation import database_message
from statesvc.cli.operation_table import operation_named
from statesvc.cli.session import FINDING, actor, service_connection
from statesvc.database.dsns import database_name
from statesvc.database.keyring_store import load_keyring
from statesvc.database.open_connection import PATIENT
from statesvc.database.sql_errors import Failure, failure
from statesvc.database.wakeups.wakeup import notify
from statesvc.files.archive_folder import archive_folder
from statesvc.http.inner_calls import InnerCalls
from statesvc.http.keys.api_keys import Caller
from statesvc.http.keys.key_store import Scope
from statesvc.http.operation import Operation, routes_of
from statesvc.http.problem import Code, Problem
from statesvc.roles.master_key import open_master_keys
from statesvc.seams import addon_of_module, is_on, sentence
from statesvc.settings.service_settings import Settings, load_settings

if TYPE_CHECKING:
    from statesvc.api.computing import Computing
    from statesvc.delivery.targets import Targets
    from statesvc.log.history import History
    from statesvc.log.tombstones import Tombstones


class CommandConnection:
    """A single connection in place of a pool and a waker.

    Wake-ups go out over it as soon as it is in no transaction.
    """

    def __init__(self, connection: AsyncConnection[Any]) -> None:
        self._connection = connection
        self._wanted: set[str] = set()

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[AsyncConnection[Any]]:
        """Provide the connection: always the same, left open."""
        await self.send_wakeups()
        yield self._connection
        await self.send_wakeups()

    def wake(self, channel: str) -> None:
        self._wanted.add(channel)

    async def send_wakeups(self) -> None:
        if self._wanted and self._connection.info.transaction_status is TransactionStatus.IDLE:
            wanted, self._wanted = self._wanted, set()
            await notify(self._connection, *sorted(wanted))


class LocalCalls(Calls):
    """Calls of operations in this process; each operation is loaded when it is called."""

    def __init__(self, context: Context, database: str) -> None:
        self.named = {"database": database}
        self._context = context
        name = actor()
        self._caller: Final = Caller(
            key_id=name, name=name, owner=name, scopes=frozenset(Scope), actor=name
        )

    async def fetch(
        self,
        operation_id: str,
        body: Mapping[str, Json] | None = None,
        /,
        *,
        accept: str,
        why: str = "",
        **given: Json,
    ) -> File:
        listed = operation_named(operation_id)
        # a group of the core's has subcommands of add-ons: `carriers map` is listed either way
        addon = addon_of_module(listed.module)
        if addon is not None and not is_on(addon):
            raise CommandError(sentence(addon, "this command"), exit_code=2)
        operation: Operation[Any] = getattr(import_module(listed.module), operation_id)
        calls = InnerCalls(routes_of([operation], self._context))
        try:
            answer = await calls.fetch(
                self._caller, listed.where, given=given, body=body, why=why, accept=accept
            )
        except Problem as problem:
            document = problem.document()
            if problem.code is Code.MISSING_SCOPE:
                # this process may do anything; its user owns no key
                document["detail"] = (
                    f"{document['detail']}; "
                    "with --url and --key-file the command acts for the owner of a key"
                )
            raise CallRefusedError(document, listed) from None
        return File(*answer)


@asynccontextmanager
async def local_calls(*, is_finding: bool = False) -> AsyncIterator[LocalCalls]:
    """Open the calls on the database of this machine's service, over a single connection."""
    settings = load_settings()
    async with (
        service_connection(
            settings, limits=FINDING if is_finding else PATIENT, announced=not is_finding
        ) as connection,
        AsyncExitStack() as stack,
    ):
        held = CommandConnection(connection)
        readings = PersonalReads(held)
        folder, keyring = archive_folder(settings), _KeyringOnce(settings, connection)

        async def computing() -> "Computing":
            # loads what prints evidence, which others do not need
            from statesvc.api.computations import ComputingHere  # noqa: PLC0415
            from statesvc.api.computing import Sources  # noqa: PLC0415

            return ComputingHere(
                Sources(
                    pool=held,
                    keyring=await keyring(),
                    folder=folder,
                    archive=_log_archive(settings),
                )
            )

        context = Context(
            pool=held,
            waker=held,
            readings=readings,
            archive=folder,
            keyring=keyring,
            carriers=lambda: settings.in_account_zones(CARRIERS),
            backup_days=settings.keys.backup_days,
            console_url=settings.http.console_url,
            tombstones=lambda: _tombstones(settings),
            log_archive=lambda: _log_archive(settings),
            targets=lambda: stack.enter_async_context(_targets(settings)),
            allowed=settings.notifier.subscriber_allow,
            computing=computing,
        )
        yield LocalCalls(context, database_name(settings.database))
        await readings.close()
        await held.send_wakeups()


def _tombstones(settings: Settings) -> "Tombstones":
    # few operations publish
    from statesvc.cli.tombstone_places import configured_tombstones  # noqa: PLC0415

    return configured_tombstones(settings)


def _log_archive(settings: Settings) -> "History":
    # few operations read months of the log
    from statesvc.log.history import History  # noqa: PLC0415

    return History(archive_folder(settings))


def _targets(settings: Settings) -> "Targets":
    # few operations send to receivers
    from statesvc.delivery.targets import Targets  # noqa: PLC0415

    return Targets(
        allowed=settings.notifier.subscriber_allow,
        source=settings.notifier.event_source,
        proxy=settings.notifier.proxy,
    )


def away_database(error: Exception) -> tuple[str, str] | None:
    """Return the database's name, and why it does not answer; None: it does."""
    if not isinstance(error, psycopg.Error) or failure(error) is not Failure.UNAVAILABLE:
        return None
    return database_name(load_settings().database), database_message(error)


class _KeyringOnce:
    """Opened by the first operation that asks for it: the master key may be away for all others."""

    def __init__(self, settings: Settings, connection: AsyncConnection[Any]) -> None:
        self._settings = settings
        self._connection = connection
        self._keyring: Keyring | None = None

    async def __call__(self) -> Keyring:
        if self._keyring is None:
            self._keyring = await load_keyring(
                self._connection, await open_master_keys(self._settings, self._connection)
            )
        return self._keyring
