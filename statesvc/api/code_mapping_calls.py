"""`/v1/unmapped-codes`, `/v1/carriers/{carrier_id}/mappings...`: operators say what a code means, without a deploy.

A preview changes nothing; teaching is an operator action; reading the history again is cut into calls, as a replay is.
"""

import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from aiohttp import web
from psycopg import AsyncConnection

from events.carriers.carrier import Carrier
from events.crypto.keyring import Keyring
from statesvc.api.code_mapping_models import (
    CarrierMappingParameters,
    ExportParameters,
    MappingParameters,
    MappingsParameters,
    PreviewRequest,
    Renormalized,
    RenormalizeParameters,
    RenormalizeRequest,
    SampleParameters,
    TeachRequest,
    UnmappedParameters,
)
from statesvc.api.personal_reads import PersonalReadings, reads_personal
from statesvc.database.pool import Connections
from statesvc.database.wakeups.waker import Wakes
from statesvc.http.api_keys import caller_of
from statesvc.http.operation import Reply, answer, body, parameters
from statesvc.http.paging import Page, decode_cursor, encode_cursor
from statesvc.http.problem import CREATED, Code, Problem, Violation
from statesvc.inbox.rollouts.code_mapping import (
    CodeMapping,
    MappingChangedError,
    NotMappedError,
    current_mappings,
    find_mapping,
    mapped_texts,
    mapping_history,
    teach,
)
from statesvc.inbox.rollouts.mapped_code import PrintedCode
from statesvc.log.archive.folder import ArchivePath
from statesvc.repair.dead_letters.reread import Rereader
from statesvc.repair.renormalize.renormalize import RereadTask
from statesvc.repair.teaching.code_events import NO_EVENT, LogPlace, as_events_have_it, has_events
from statesvc.repair.teaching.mapping_list import ListedMapping, MappingExport, export, listed
from statesvc.repair.teaching.preview import MappingPreview, preview_mapping
from statesvc.repair.teaching.reread_code import CodeReread, RereadPosition, RereadRequest
from statesvc.repair.teaching.samples import CodeSample, code_samples
from statesvc.repair.teaching.unmapped_codes import UnmappedCode, unmapped_codes

MESSAGES_MAX: Final = 2_000
SECONDS_MAX: Final = 15.0
_CURSOR_FIELDS: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeMappingCalls:
    """The handlers."""

    pool: Connections
    keyring: Keyring
    waker: Wakes
    readings: PersonalReadings
    carriers: Mapping[str, Carrier]
    archive: ArchivePath | None

    async def unmapped(self, request: web.Request) -> Reply[Page[UnmappedCode]]:
        """All of them: they are few."""
        carrier_id = parameters(request, UnmappedParameters).carrier_id
        async with self.pool.connection() as connection:
            return answer(Page(await unmapped_codes(connection, carrier_id=carrier_id, keyring=self.keyring), None))

    async def samples(self, request: web.Request) -> Reply[Page[CodeSample]]:
        """Events with the code; on request, with scope `pii`, with their texts."""
        asked = parameters(request, SampleParameters)
        self._carrier(asked.carrier_id)
        personal = reads_personal(request, asked.include)
        async with self.pool.connection() as connection:
            found = await code_samples(
                connection, (asked.carrier_id, asked.raw_type, asked.raw_code), self.keyring, personal=personal, limit=asked.limit
            )
            if personal and found:
                target = f"samples of a code of {asked.carrier_id}"
                await self.readings.record(connection, request, call="code_samples", target=target, carrier_id=asked.carrier_id)
        return answer(Page(found, None))

    async def mappings(self, request: web.Request) -> Reply[Page[ListedMapping]]:
        """Those in effect, the newest first."""
        asked = parameters(request, MappingsParameters)
        carrier = self._carrier(asked.carrier_id)
        bound_to: dict[str, Any] = {"list": "mappings", "carrier_id": asked.carrier_id}
        before = None
        if asked.cursor is not None:
            (before,) = decode_cursor(asked.cursor, bound_to, fields=1)
            if type(before) is not int:
                raise Problem(Code.INVALID_CURSOR, "the cursor names nothing that is here; start again without one")
        async with self.pool.connection() as connection:
            rows = [row for row in await current_mappings(connection, carrier_id=asked.carrier_id) if row.kind is not None]
            rows = sorted((row for row in rows if before is None or row.revision < before), key=lambda row: -row.revision)
            page = rows[: asked.limit]
            items = await self._listed(connection, request, carrier, page, personal=reads_personal(request, asked.include))
        more = len(rows) > asked.limit
        return answer(Page(items, encode_cursor([page[-1].revision], bound_to) if more else None))

    async def show(self, request: web.Request) -> Reply[Page[ListedMapping]]:
        """The row, and all others of its code, the newest first."""
        asked = parameters(request, MappingParameters)
        carrier = self._carrier(asked.carrier_id)
        async with self.pool.connection() as connection:
            found = await self._found(connection, asked.carrier_id, asked.revision)
            rows = await mapping_history(connection, found.code)
            items = await self._listed(connection, request, carrier, rows, personal=reads_personal(request, asked.include))
        return answer(Page(items, None))

    async def preview(self, request: web.Request) -> Reply[MappingPreview]:
        """What teaching it and reading its history again would change."""
        asked = body(request, PreviewRequest)
        carrier = self._carrier(parameters(request, CarrierMappingParameters).carrier_id)
        printed = _printed(asked, carrier)
        async with self.pool.connection() as connection:
            return answer(await self._previewed(connection, request, carrier, printed, asked))

    async def teach(self, request: web.Request) -> Reply[ListedMapping]:
        """Adds a row; in effect at the next claim."""
        asked = body(request, TeachRequest)
        carrier = self._carrier(parameters(request, CarrierMappingParameters).carrier_id)
        printed = _printed(asked, carrier)
        meaning = asked.meaning.meaning if asked.meaning is not None else None
        digest = self.keyring.carrier_digest(carrier.carrier_id)
        async with self.pool.connection() as connection:
            printed = await as_events_have_it(connection, printed, digest)
            if meaning is not None and not asked.force and not await has_events(connection, printed.clear(digest)):
                raise Problem(Code.INVALID_REQUEST, f"{NO_EVENT}; `force` maps it all the same")
            try:
                actor = caller_of(request).actor
                revision = await teach(connection, self.keyring, printed, meaning, why=asked.why, actor=actor, replaces=asked.replaces)
            except MappingChangedError as error:
                raise Problem(
                    Code.CONFLICT, f"nothing was done: {error}; preview it again", members={"latest_revision": error.revision}
                ) from error
            except NotMappedError as error:
                raise Problem(Code.CONFLICT, "no mapping of the code is in effect: the normalizer reads it") from error
            row = await self._found(connection, carrier.carrier_id, revision)
            texts = await mapped_texts(connection, self.keyring, carrier)
        return answer(listed(carrier, row, texts, shows_texts=False), status=CREATED)

    async def renormalize(self, request: web.Request) -> Reply[Renormalized]:
        """Reads the history of the row's code again, as much as fits into a call."""
        asked, wanted = parameters(request, RenormalizeParameters), body(request, RenormalizeRequest)
        self._carrier(asked.carrier_id)
        async with self.pool.connection() as connection:
            row = await self._found(connection, asked.carrier_id, asked.revision)
        bound_to = {"renormalize": asked.revision}
        run = CodeReread(
            connections=self.pool,
            rereader=Rereader(keyring=self.keyring, carriers=self.carriers, writer=_writer("renormalize"), archive=self.archive),
            request=RereadRequest(code=row.code, revision=row.revision, actor=caller_of(request).actor, why=wanted.why),
            wake=self._wake,
            position=_position(wanted.cursor, bound_to),
            messages_max=MESSAGES_MAX,
            seconds=SECONDS_MAX,
        )
        report = await run.run()
        return answer(
            Renormalized(
                revision=row.revision,
                messages=report.messages,
                corrected=report.corrected,
                retracted=report.retracted,
                added=report.added,
                unreadable=report.unreadable,
                transitions=report.transitions,
                notifications=report.notifications,
                done=run.is_done,
                dead_letter_id=run.dead_letter_id,
                obstacle=run.obstacle,
                next_cursor=None if run.is_done else _cursor(run.position, bound_to),
            )
        )

    async def export(self, request: web.Request) -> Reply[MappingExport]:
        """Those in effect, as a patch of the carrier's table."""
        asked = parameters(request, ExportParameters)
        carrier = self._carrier(asked.carrier_id)
        personal = reads_personal(request, asked.include)
        async with self.pool.connection() as connection:
            rows = await current_mappings(connection, carrier_id=asked.carrier_id)
            texts: Mapping[str, str] = {}
            if personal:
                texts = await mapped_texts(connection, self.keyring, carrier)
                await self._record(connection, request, carrier, rows)
        return answer(export(carrier, rows, texts))

    async def _previewed(
        self, connection: AsyncConnection[Any], request: web.Request, carrier: Carrier, printed: PrintedCode, asked: PreviewRequest
    ) -> MappingPreview:
        task = RereadTask(
            carrier=carrier,
            keyring=self.keyring,
            writer=_writer("preview"),
            actor=caller_of(request).actor,
            rolls_back=True,
            archive=self.archive,
        )
        digest = self.keyring.carrier_digest(carrier.carrier_id)
        code = (await as_events_have_it(connection, printed, digest)).clear(digest)
        return await preview_mapping(connection, task, code, asked.meaning.meaning if asked.meaning is not None else None)

    async def _listed(
        self, connection: AsyncConnection[Any], request: web.Request, carrier: Carrier, rows: Sequence[CodeMapping], *, personal: bool
    ) -> list[ListedMapping]:
        texts = await mapped_texts(connection, self.keyring, carrier)
        if personal:
            await self._record(connection, request, carrier, rows)
        return [listed(carrier, row, texts, shows_texts=personal) for row in rows]

    async def _record(self, connection: AsyncConnection[Any], request: web.Request, carrier: Carrier, rows: Sequence[CodeMapping]) -> None:
        """What an operator wrote may be personal: who reads it is on record."""
        if any(row.code.stand_ins for row in rows):
            target = f"mapped texts of {carrier.carrier_id}"
            await self.readings.record(connection, request, call="mappings", target=target, carrier_id=carrier.carrier_id)

    async def _found(self, connection: AsyncConnection[Any], carrier_id: str, revision: int) -> CodeMapping:
        found = await find_mapping(connection, revision)
        if found is None or found.carrier_id != carrier_id:
            raise Problem(Code.NOT_FOUND, f"{carrier_id} has no mapping with the revision {revision}")
        return found

    def _carrier(self, carrier_id: str) -> Carrier:
        carrier = self.carriers.get(carrier_id)
        if carrier is None:
            raise Problem(Code.UNKNOWN_CARRIER, "no such carrier_id; `statesvc carriers` lists them")
        return carrier

    async def _wake(self, channels: frozenset[str]) -> None:
        for channel in sorted(channels):
            self.waker.wake(channel)


def _writer(what: str) -> str:
    return f"{socket.gethostname()}-{what}"


def _printed(asked: PreviewRequest, carrier: Carrier) -> PrintedCode:
    printed = asked.printed(carrier.carrier_id)
    if printed.refusal is not None:
        raise Problem(Code.INVALID_REQUEST, printed.refusal, violations=[Violation("/body", printed.refusal)])
    return printed


def _cursor(position: RereadPosition, bound_to: Mapping[str, Any]) -> str:
    began = position.began.isoformat() if position.began is not None else None
    return encode_cursor([*position.place, began, int(position.is_left)], bound_to)


def _position(cursor: str | None, bound_to: Mapping[str, Any]) -> RereadPosition:
    if cursor is None:
        return RereadPosition()
    match decode_cursor(cursor, bound_to, fields=_CURSOR_FIELDS):
        case [int() as batch_id, int() as ordinal, str() as began, int() as left] if 0 <= batch_id < 2**63 and -1 <= ordinal < 2**31:
            try:
                return RereadPosition(place=LogPlace(batch_id, ordinal), began=datetime.fromisoformat(began), is_left=bool(left))
            except ValueError:
                pass
    raise Problem(Code.INVALID_CURSOR, "send `next_cursor` as it was given")
