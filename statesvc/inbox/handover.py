"""What a worker in another language read, in place of our own normalizer's reading (docs/claim-protocol.md). No I/O.

The hand-over comes from another program: it opens only under its own message's key, and every field is checked before it counts.
"""

import re
from typing import Final, NamedTuple

from events.crypto.keyring import body_context
from events.crypto.sealing import SealError, SealingKey
from events.errors import Cause, UnreadableMessageError
from events.event import Normalized
from events.normalized import load
from statesvc.inbox.claim import Message

NORMALIZED: Final = "normalized"
"""The stage of a message that was handed over."""

_READER: Final = re.compile(r"([a-z0-9][a-z0-9_.-]{0,63})@([A-Za-z0-9][A-Za-z0-9_.+-]{0,31})", re.ASCII)


class Handover(NamedTuple):
    """What was read, and by which normalizer in which version."""

    normalized: Normalized
    normalizer: str
    version: str


def taken_over(message: Message, body_key: SealingKey) -> Handover:
    """Opens and checks the hand-over. Raises UnreadableMessageError, `normalizer_failed`: a defect of the worker that sealed it."""
    reader = _READER.fullmatch(message.normalized_by or "")
    if reader is None:
        raise UnreadableMessageError(Cause.NORMALIZER_FAILED, "the hand-over's normalizer is not called `name@version`")
    if message.normalized is None:
        raise UnreadableMessageError(Cause.NORMALIZER_FAILED, "the message is marked as handed over, but nothing was")
    try:
        document = body_key.open(message.normalized, body_context(message.message_id))
    except SealError as error:
        raise UnreadableMessageError(Cause.NORMALIZER_FAILED, f"the hand-over does not open: {error}") from error
    return Handover(load(document), reader[1], reader[2])
