"""Generated histories of shipments, which go through the service's own append, erasure and
watcher on a real database.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from itertools import count
from typing import Final
from uuid import uuid4

import hypothesis.strategies as st

from events.crypto.sealing import SealingKey
from events.entry.kinds import Provenance
from events.event import Event, EventPlace, PrintedTime, Raw, Reading
from events.identity.ids import correction_id, identify
from events.identity.recipes import number_of
from events.vocabulary import Kind, Reason, Status, TimePrecision, TzSource
from statesvc.append.append_batch import AppendBatch
from statesvc.append.transaction import append
from statesvc.privacy.erasure import Erasure, erase
from statesvc.reading.read_message import Read
from tests.world.due_work import do_due_work
from tests.world.log_builder import LogBuilder

NEW_YORK, TOKYO = timezone(timedelta(hours=-5)), timezone(timedelta(hours=9))
EXAMPLE = count(1)
"""Each history has numbers of its own: the log is not emptied."""


@dataclass(frozen=True)
class Number:
    """A number of a carrier in several spellings, and spellings of one discriminator."""

    carrier_id: str
    spellings: tuple[str, ...]
    discriminators: tuple[str, ...] = ("",)


NUMBERS: Final = (
    Number("ups", ("1Z{0:08}", "1z {0:08}", "1Z-{0:08}\u200b")),
    # the first begins with the consignee's postcode
    Number("usps", ("4201234594{0:020}", "94{0:020}", "94-{0:020}")),
    Number("fedex", ("61{0:010}", "61 {0:010}"), ("12026~4490", "12026~4490~FDEG")),
    Number("fedex", ("61{0:010}", "61-{0:010}"), ("12027~4491~FDEG", "12027~4491")),
)


@dataclass(frozen=True, kw_only=True)
class Scan:
    """Statement of a carrier about one scan, each time that it repeats it."""

    number: int = 0
    status: Status = Status.IN_TRANSIT
    kind: Kind = Kind.SCAN
    reason: Reason | None = None
    hours_ago: int = 10
    offset: timezone = NEW_YORK
    precision: TimePrecision = TimePrecision.SECOND
    is_timed: bool = True
    country: str | None = "US"
    has_id: bool = True
    corrects: int | None = None
    """The scan that a correction names, by its place; the correction then has a status."""


@dataclass(frozen=True)
class Push:
    """One statement of a message: a scan by its place, and what differs each time."""

    scan: int
    spelling: int = 0
    service: str | None = None
    signed_by: str | None = None
    estimated_delivery: str | None = None
    stamp: str = ""


@dataclass(frozen=True)
class Messages:
    """Messages that are appended together."""

    messages: tuple[tuple[Push, ...], ...]


@dataclass(frozen=True)
class Reread:
    """A correction of our own: of a scan, or of our last correction of it.

    Without a status the scan is taken back.
    """

    scan: int
    status: Status | None = None


@dataclass(frozen=True)
class Erased:
    """A number is erased."""

    number: int


@dataclass(frozen=True)
class Look:
    """The watcher observes what did not happen."""


Step = Messages | Reread | Erased | Look
STATUSES = st.sampled_from(
    [*[status for status in Status if status is not Status.UNKNOWN], *[Status.DELIVERED] * 8]
)
"""Most deliveries are signed for, and that is the first that an erasure must leave no trace of."""
PLACES = st.sampled_from([0, 0, 0, *range(len(NUMBERS))])
SCANS = st.lists(
    st.builds(
        Scan,
        number=PLACES,
        status=STATUSES,
        kind=st.sampled_from([*[Kind.SCAN] * 4, Kind.INFO, Kind.UNMAPPED, Kind.CORRECTION]),
        reason=st.none() | st.sampled_from(Reason),
        hours_ago=st.integers(0, 9) | st.integers(0, 800),
        offset=st.sampled_from([NEW_YORK, TOKYO]),
        precision=st.sampled_from([TimePrecision.SECOND, TimePrecision.SECOND, TimePrecision.DAY]),
        is_timed=st.sampled_from([True, True, True, False]),
        country=st.sampled_from([None, "US", "CA"]),
        has_id=st.sampled_from([True, True, False]),
        corrects=st.none() | st.integers(0, 7),
    ),
    min_size=1,
    max_size=8,
)
PUSHES = st.builds(
    Push,
    scan=st.integers(0, 7),
    spelling=st.integers(0, 2),
    service=st.sampled_from([None, "UPS Ground", "UPS SurePost"]),
    signed_by=st.sampled_from([None, None, "R. Roe", "J. Doe"]),
    estimated_delivery=st.sampled_from([None, None, "2026-03-05", "2026-03-06"]),
    stamp=st.sampled_from(["", "1"]),
)
MESSAGES = st.builds(
    Messages,
    st.lists(st.lists(PUSHES, min_size=1, max_size=4).map(tuple), min_size=1, max_size=3).map(
        tuple
    ),
)
STEPS = st.lists(
    st.one_of(
        MESSAGES,
        MESSAGES,
        MESSAGES,
        st.builds(Reread, st.integers(0, 7), st.none() | STATUSES),
        st.builds(Erased, PLACES),
        st.just(Look()),
    ),
    min_size=1,
    max_size=10,
)


class ShipmentHistory:
    """One history, with numbers of its own."""

    def __init__(self, log: LogBuilder, scans: Sequence[Scan]) -> None:
        self.log = log
        self.scans = scans
        self.example = next(EXAMPLE)
        self.now = datetime.now(NEW_YORK).replace(microsecond=0)
        self.rereadings: dict[int, str] = {}

    async def take(self, step: Step) -> None:
        """Apply a step."""
        match step:
            case Messages(messages):
                await self.append(
                    *(self.read([self.event(push) for push in message]) for message in messages)
                )
            case Reread(scan, status):
                await self.append(self.read([self.correction(scan % len(self.scans), status)]))
            case Erased(number):
                await self.erase(NUMBERS[number])
            case Look():
                await do_due_work(self.log.connection)

    def numbers(self) -> list[str]:
        """Return the numbers as they are compared."""
        return [number_of(each.carrier_id, self.spelled(each, 0)) for each in NUMBERS]

    def spelled(self, number: Number, spelling: int) -> str:
        return number.spellings[spelling % len(number.spellings)].format(self.example)

    def event(self, push: Push) -> Event:
        place = push.scan % len(self.scans)
        scan = self.scans[place]
        number = NUMBERS[scan.number]
        at = (self.now - timedelta(hours=scan.hours_ago)).astimezone(scan.offset)
        corrected = scan.corrects if scan.kind is Kind.CORRECTION else None
        moves = scan.kind is Kind.SCAN or corrected is not None
        reading = Reading(
            tracking_number=self.spelled(number, push.spelling),
            discriminator=number.discriminators[push.spelling % len(number.discriminators)],
            kind=scan.kind,
            status=scan.status if moves else None,
            reason=scan.reason if moves else None,
            corrects=None if corrected is None else self.native_id(corrected),
            raw=Raw(type="T", code=f"X{place}"),
            native_id=self.native_id(place) if scan.has_id else None,
            place=EventPlace(city="Springfield", country=scan.country),
            time=PrintedTime(
                printed=f"{at:%Y-%m-%d %H:%M:%S}",
                instant=at,
                tz_source=TzSource.EXPLICIT if scan.is_timed else TzSource.RECEIVED,
                precision=scan.precision,
                identity=f"{at:%Y%m%dT%H%M%S}",
            ),
            service=push.service,
            signed_by=push.signed_by,
            estimated_delivery=push.estimated_delivery,
            stamp=push.stamp,
        )
        return identify(
            reading,
            carrier_id=number.carrier_id,
            digest=self.log.keyring.carrier_digest(number.carrier_id),
        )

    def native_id(self, place: int) -> str:
        return f"{self.example}-{place % len(self.scans)}"

    def correction(self, place: int, status: Status | None) -> Event:
        corrected, before = self.event(Push(place)), self.rereadings.get(place)
        name = correction_id(
            corrected=corrected.event_id, replaces=before or "", reading=str(status)
        )
        self.rereadings[place] = name
        target = corrected.event_id
        return replace(
            corrected,
            event_id=name,
            aliases=(),
            kind=Kind.CORRECTION,
            status=status,
            reason=None,
            corrects=target,
            anchor=before,
        )

    def read(self, events: Sequence[Event]) -> Read:
        """Read a message of the first event's carrier."""
        carrier_id = events[0].carrier_id
        source = Provenance(
            message_id=uuid4(),
            body_commitment=bytes(32),
            received_at=self.now,
            normalizer=carrier_id,
            normalizer_version="1",
        )
        its = tuple(event for event in events if event.carrier_id == carrier_id)
        return Read(
            source=source,
            carrier_id=carrier_id,
            events=its,
            rejections=(),
            body_key=SealingKey.fresh(),
            sealed_key=b"",
        )

    async def append(self, *reads: Read) -> None:
        async with self.log.connection.transaction():
            await append(AppendBatch(self.log.connection, self.log.keyring, reads, "worker-1"))

    async def erase(self, number: Number) -> None:
        erasure = Erasure(
            carrier_id=number.carrier_id,
            tracking_number=self.spelled(number, 1),
            discriminator=number.discriminators[-1],
            why="a test",
            actor="test",
            backup_days=0,
        )
        await erase(self.log.connection, erasure)
