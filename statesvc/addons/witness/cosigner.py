"""Cosignatures by witnesses (C2SP tlog-witness): of the newest head, at most one an interval.

It works beside the sealer and never delays it. A witness signs a head only if it continues the one
that it signed before, so a head that a quorum signed is the same for all readers. A line is kept
only if it holds by the witness's key.
"""

import asyncio
import base64
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import aiohttp
from psycopg import AsyncConnection

from events.merkle.checkpoint import cosignature
from statesvc.database.pool import Connections
from statesvc.database.queries import queries
from statesvc.health.finding import Finding, warn
from statesvc.health.status_parts import OwnCheck
from statesvc.log.checkpoints import SignedHead, latest_head
from statesvc.log.proofs import prove_consistency
from statesvc.roles.runtime import Launch, Runtime
from statesvc.roles.shutdown import Component
from statesvc.sealer.head_follower import HeadFollower
from statesvc.sealer.sealer_loop import Sealer
from statesvc.settings.witnesses import Witness
from statesvc.telemetry.metric import Attribute
from statesvc.telemetry.metrics import Telemetry

INTERVAL_SECONDS: Final = 10.0
_RETRY_SECONDS_MAX: Final = 300.0
_ANSWER_SECONDS: Final = 10.0
ANSWER_BYTES_MAX: Final = 16_384
_SIZE: Final = re.compile(rb"(0|[1-9][0-9]{0,18})\n")
_SIZE_TYPE: Final = "text/x.tlog.size"
_REFUSALS: Final = {
    403: "it trusts none of the keys that signed: give it those of `statesvc keys log`",
    404: "it does not know this log: give it the origin, and the keys of `statesvc keys log`",
    422: "THE LOG DOES NOT CONTINUE the one that it cosigned before: run `statesvc verify`",
}
_SQL = queries("statesvc.addons.witness", "cosigner")


class WitnessError(RuntimeError):
    """A witness, or their quorum, did not cosign; the message says why."""

    def __init__(self, outcome: str, text: str) -> None:
        super().__init__(text)
        self.outcome = outcome


class Cosigner(HeadFollower):
    def __init__(
        self,
        pool: Connections,
        witnesses: Sequence[Witness],
        quorum: int,
        *,
        leads: Callable[[], bool],
        sealed: asyncio.Event,
        telemetry: Telemetry,
        interval_seconds: float = INTERVAL_SECONDS,
    ) -> None:
        super().__init__(
            "cosigner",
            pool,
            leads=leads,
            sealed=sealed,
            telemetry=telemetry,
            every_seconds=interval_seconds,
            retry_seconds=interval_seconds,
            retry_seconds_max=_RETRY_SECONDS_MAX,
        )
        # with the size that each cosigned; a witness that is not asked from there says its size
        self._sizes = dict.fromkeys(witnesses, 0)
        self._quorum = quorum
        self._cosigned: str | None = None

    async def _follow(self) -> float | None:
        async with self._pool.connection() as connection:
            head = await latest_head(connection)
        if head is None or head.note == self._cosigned:
            await self._sealed.wait()
            return 0.0
        await self._cosign(head)
        self._cosigned = head.note
        return None

    async def _cosign(self, head: SignedHead) -> None:
        """Ask all witnesses at once. Raises WitnessError without a quorum."""
        timeout = aiohttp.ClientTimeout(total=_ANSWER_SECONDS)
        async with aiohttp.ClientSession(timeout=timeout) as session:
            lines, faults = [], []
            for answer in await asyncio.gather(
                *(self._line_of(session, witness, head) for witness in self._sizes),
                return_exceptions=True,
            ):
                match answer:
                    case str():
                        lines.append(answer)
                    case WitnessError():
                        faults.append(str(answer))
                    # of the database: the whole round is tried again
                    case BaseException():
                        raise answer
                outcome = answer.outcome if isinstance(answer, WitnessError) else "cosigned"
                self._telemetry.checkpoint_cosignatures.add(1, {Attribute.OUTCOME: outcome})
        if lacks := len(lines) < self._quorum:
            faults.append(
                f"{len(lines)} of {len(self._sizes)} witnesses cosigned the newest checkpoint, of"
                f" {head.tree_size:,} entries; the quorum is {self._quorum}"
            )
        parameters = {
            "tree_size": head.tree_size,
            "second_signature": head.second_signature,
            "cosignatures": "".join(lines),
            "faults": faults,
        }
        async with self._pool.connection() as connection:
            await connection.execute(_SQL["keep_faults" if lacks else "keep_cosigned"], parameters)
        if lacks:
            raise WitnessError("no quorum", "; ".join(faults))

    async def _line_of(
        self, session: aiohttp.ClientSession, witness: Witness, head: SignedHead
    ) -> str:
        """Return the witness's line about the head. Raises WitnessError."""
        name = witness.key.name
        try:
            status, answer = await self._submit(session, witness, head)
            # once more from the size that it says: it was asked before this process began
            if status == 409:
                status, answer = await self._submit(session, witness, head)
        except (aiohttp.ClientError, TimeoutError) as error:
            text = f"the witness {name} does not answer: {str(error) or type(error).__name__}"
            raise WitnessError("unreachable", text) from error
        if status != 200:
            why = _REFUSALS.get(status, "see the witness's log")
            raise WitnessError("refused", f"the witness {name} answered {status}: {why}")
        try:
            line = cosignature(head.note, answer.decode(), witness.key)
        except ValueError as error:
            text = f"the witness {name} gave no valid cosignature: {error}"
            raise WitnessError("invalid", text) from error
        self._sizes[witness] = head.tree_size
        return line

    async def _submit(
        self, session: aiohttp.ClientSession, witness: Witness, head: SignedHead
    ) -> tuple[int, bytes]:
        """Post the head from the size that the witness knows; keep the size of a 409."""
        # after a restore the log may be behind it, which the witness then says
        old = min(self._sizes[witness], head.tree_size)
        async with self._pool.connection() as connection:
            proof = await prove_consistency(connection, old, head.tree_size, head)
        path = "".join(f"{base64.b64encode(node).decode()}\n" for node in proof.path)
        async with session.post(
            f"{witness.url}/add-checkpoint",
            data=f"old {old}\n{path}\n{head.note}".encode(),
            # an answer from elsewhere is not the witness's
            allow_redirects=False,
        ) as response:
            answer = b""
            async for chunk in response.content.iter_chunked(ANSWER_BYTES_MAX):
                answer += chunk
                if len(answer) > ANSWER_BYTES_MAX:
                    text = f"the witness {witness.key.name} answers more than 16 KiB"
                    raise WitnessError("invalid", text)
        if response.status == 409:
            self._sizes[witness] = _stated_size(witness, response.content_type, answer, head)
        return response.status, answer


def _stated_size(witness: Witness, content_type: str, answer: bytes, head: SignedHead) -> int:
    """Return the size that the witness cosigned last. Raises WitnessError."""
    stated = _SIZE.fullmatch(answer)
    if stated is None or content_type != _SIZE_TYPE:
        text = f"the witness {witness.key.name} answered 409 without a size"
        raise WitnessError("invalid", text)
    size = int(stated[1])
    if size > head.tree_size:
        text = (
            f"the witness {witness.key.name} cosigned {size:,} entries, and THE LOG HAS"
            f" {head.tree_size:,}: was it restored from a backup?"
        )
        raise WitnessError("refused", text)
    return size


def witness_jobs(launch: Launch, base: Runtime, sealer: Sealer) -> list[Component]:
    settings = launch.settings.checkpoint
    if not settings.witnesses:
        return []
    cosigner = Cosigner(
        base.pool,
        settings.witnesses,
        settings.quorum,
        leads=lambda: sealer.leads,
        sealed=sealer.watch(),
        telemetry=base.telemetry,
    )
    return [Component(name=cosigner.name, run=cosigner.run, stop=cosigner.stop)]


async def _find(connection: AsyncConnection[Any]) -> list[Finding]:
    rows = await (await connection.execute(_SQL["faults"])).fetchall()
    return [warn("witnesses", fault) for (fault,) in rows]


CHECK: Final = OwnCheck("witnesses", "those that are set cosign each newest checkpoint", _find)
