"""The body of a message as it is stored, and the days that they are archived by."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from typing import Final
from uuid import UUID

FIRST: Final = UUID(int=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyRecord:
    """A message's body as it is stored.

    `sealed` under the body's own key, which is not in the file.
    """

    message_id: UUID
    received_at: datetime
    carrier_id: str
    commitment: bytes
    headers: Mapping[str, str]
    sealed: bytes = field(repr=False)


def bounds(day: date) -> dict[str, datetime]:
    """Return `from` and `until` for the statements: days are UTC's, like the partitions."""
    begin = datetime.combine(day, time(tzinfo=UTC))
    return {"from": begin, "until": begin + timedelta(days=1)}
