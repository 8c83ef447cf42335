"""Which version reads a message, and which one is tried next to it. No I/O.

The choice is a function of the message and of the dial that its claim returned, so it is the same in every process and at every
attempt, and a message that a small share gives to the candidate stays with it as the share grows. The candidate can harm nothing:
where it fails, the stable version's reading takes effect.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from events.carriers.carrier import Carrier
from events.crypto.keyring import Keyring
from statesvc.inbox.claim import Burial, Message
from statesvc.inbox.read_message import NORMALIZED, Read, read_message
from statesvc.inbox.rollouts.code_mapping import Mappings
from statesvc.inbox.rollouts.differences import Difference, Outcome, differences

_PARTS: Final = 10_000


@dataclass(frozen=True, slots=True)
class Trial:
    """A message that the candidate is tried on. `taken`: its reading takes effect; `failed`: it could not read what stable can."""

    message: Message
    stable: str
    candidate: str
    taken: bool
    failed: bool = False


def in_share(message_id: UUID, carrier_id: str, percent: int) -> bool:
    """Whether this message belongs to the share of `percent`."""
    if percent <= 0:
        return False
    digest = hashlib.sha256(b"rollout\x1f" + carrier_id.encode() + b"\x1f" + message_id.bytes).digest()
    return int.from_bytes(digest[:8]) % _PARTS < percent * (_PARTS // 100)


def trial_of(message: Message, carriers: Mapping[str, Carrier]) -> Trial | None:
    """None: the stable version reads it alone. A candidate that this release does not hold is never tried."""
    if message.candidate is None or message.stage == NORMALIZED:
        return None
    carrier = carriers.get(message.carrier_id)
    if carrier is None or message.candidate not in carrier.normalizers or message.candidate == carrier.stable:
        return None
    taken = in_share(message.message_id, message.carrier_id, message.percent)
    if not taken and not message.shadow:
        return None
    return Trial(message, carrier.stable, message.candidate, taken)


def read_chosen(
    message: Message, *, keyring: Keyring, carriers: Mapping[str, Carrier], mappings: Mappings
) -> tuple[Read | Burial, Trial | None]:
    """Reads with the version that the dial gives."""
    trial = trial_of(message, carriers)
    if trial is None or not trial.taken:
        return read_message(message, keyring=keyring, carriers=carriers, mappings=mappings), trial
    outcome = read_message(message, keyring=keyring, carriers=carriers, mappings=mappings, version=trial.candidate)
    if isinstance(outcome, Read):
        return outcome, trial
    stable = read_message(message, keyring=keyring, carriers=carriers, mappings=mappings)
    return stable, Trial(message, trial.stable, trial.candidate, taken=True, failed=isinstance(stable, Read))


@dataclass(frozen=True, slots=True)
class ComparedTrial:
    """What came of a trial."""

    trial: Trial
    failed: bool
    differences: list[Difference]


def compare(trial: Trial, *, keyring: Keyring, carriers: Mapping[str, Carrier], mappings: Mappings) -> ComparedTrial:
    """Runs both versions on a copy where the dial's shadow is on; else only says whether the candidate failed."""
    if not trial.message.shadow:
        return ComparedTrial(trial, trial.failed, [])
    stable = read_message(trial.message, keyring=keyring, carriers=carriers, mappings=mappings)
    candidate = read_message(trial.message, keyring=keyring, carriers=carriers, mappings=mappings, version=trial.candidate)
    failed = isinstance(candidate, Burial) and isinstance(stable, Read)
    return ComparedTrial(trial, failed, differences(_outcome(stable), _outcome(candidate), keyring))


def _outcome(read: Read | Burial) -> Outcome:
    if isinstance(read, Burial):
        return Outcome(failure=f"{read.cause.value}: {read.detail}")
    return Outcome(events=read.events, rejections=len(read.rejections))
