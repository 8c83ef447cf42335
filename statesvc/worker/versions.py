"""Choice of the version that reads a message, and of the candidate tried beside it. No I/O.

The claim decides whether a message falls to the candidate's share, as a function of its id, so the
answer is the same in every process and at every attempt, and a message within a small share stays
with the candidate as the share grows. A candidate of ours beside our stable version is harmless:
where it fails, the stable version's reading takes effect.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from events.carriers.carrier import Carrier
from events.crypto.keyring import Keyring
from statesvc.queue.claim import Burial, Message
from statesvc.reading.code_mapping import Mappings
from statesvc.reading.differences import Difference, Outcome, differences
from statesvc.reading.read_message import NORMALIZED, Read, read_message

RAW = "raw"


@dataclass(frozen=True, slots=True)
class Trial:
    """A message that the candidate is tried on.

    `takes_effect`: its reading takes effect; `failed`: it could not read a message that the stable
    version can.
    """

    message: Message
    stable: str
    candidate: str
    takes_effect: bool
    failed: bool = False


def trial_of(message: Message, carriers: Mapping[str, Carrier]) -> Trial | None:
    """Return the trial; None: the stable version reads it alone.

    A candidate that this release does not hold is never tried here.
    """
    if (candidate := message.candidate) is None:
        return None
    carrier = carriers.get(message.carrier_id)
    if carrier is None or candidate not in carrier.normalizers:
        return None
    if message.stable is not None:
        is_theirs = message.shadow and message.normalized_by == message.stable
        return Trial(message, message.stable, candidate, takes_effect=False) if is_theirs else None
    if (
        message.stage == NORMALIZED
        or candidate == carrier.stable
        or not (message.in_share or message.shadow)
    ):
        return None
    return Trial(message, carrier.stable, candidate, takes_effect=message.in_share)


def read_chosen(
    message: Message, *, keyring: Keyring, carriers: Mapping[str, Carrier], mappings: Mappings
) -> tuple[Read | Burial, Trial | None]:
    """Read with the version that the rollout chooses."""
    trial = trial_of(message, carriers)
    if trial is None or not trial.takes_effect:
        version = _beside_foreign_stable(message, carriers)
        return read_message(
            message, keyring=keyring, carriers=carriers, mappings=mappings, version=version
        ), trial
    outcome = read_message(
        message, keyring=keyring, carriers=carriers, mappings=mappings, version=trial.candidate
    )
    if isinstance(outcome, Read):
        return outcome, trial
    stable = read_message(message, keyring=keyring, carriers=carriers, mappings=mappings)
    return stable, Trial(
        message, trial.stable, trial.candidate, takes_effect=True, failed=isinstance(stable, Read)
    )


def _beside_foreign_stable(message: Message, carriers: Mapping[str, Carrier]) -> str | None:
    """Return our candidate's version where a foreign fleet is stable; None: our stable version."""
    if message.stable is None:
        return None
    carrier = carriers.get(message.carrier_id)
    is_ours = carrier is not None and message.candidate in carrier.normalizers
    return message.candidate if is_ours else None


@dataclass(frozen=True, slots=True)
class ComparedTrial:
    trial: Trial
    failed: bool
    differences: list[Difference]


def compare(
    trial: Trial, *, keyring: Keyring, carriers: Mapping[str, Carrier], mappings: Mappings
) -> ComparedTrial:
    """Run both versions on a copy where the rollout's shadow is on; else only say
    whether the candidate failed.
    """
    if not trial.message.shadow:
        return ComparedTrial(trial, trial.failed, [])
    stable = read_message(trial.message, keyring=keyring, carriers=carriers, mappings=mappings)
    raw = replace(trial.message, stage=RAW, normalized_by=None, normalized=None)
    candidate = read_message(
        raw, keyring=keyring, carriers=carriers, mappings=mappings, version=trial.candidate
    )
    return compared(trial, stable, candidate, keyring)


def compared(
    trial: Trial, stable: Read | Burial, candidate: Read | Burial | None, keyring: Keyring
) -> ComparedTrial:
    """Compare both readings. `candidate` None: it declined."""
    failed = not isinstance(candidate, Read) and isinstance(stable, Read)
    return ComparedTrial(trial, failed, differences(_outcome(stable), _outcome(candidate), keyring))


def _outcome(read: Read | Burial | None) -> Outcome:
    match read:
        case Read():
            return Outcome(events=read.events, rejections=len(read.rejections))
        case Burial():
            return Outcome(failure=f"{read.cause.value}: {read.detail}")
        case None:
            return Outcome(failure="declined")
