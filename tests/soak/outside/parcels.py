"""The parcels that the outside ledger invents: what happens to each, how its carrier prints it,
and what must come of it.

Written from the carriers' formats and the contract alone; nothing here is the service's.
"""

import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import count
from typing import Any, Final, NamedTuple

from tests.soak.outside import envelopes
from tests.soak.outside.envelopes import MARK, Printed, Writer

JOURNEYS: Final = (
    "label pickup depart arrive out delivered",
    "label pickup depart arrive depart arrive out delivered",
    "label pickup depart delay depart arrive out delivered",
    "label pickup depart arrive out attempt out delivered",
    "label pickup depart arrive out attempt back",
    "label pickup depart arrive out delivered arrive",
    "label pickup depart strange",
)
STRANGE_MEANS: Final = "exception"
"""Status that an operator maps the strange codes to, while they are pushed."""
ACTIVE: Final = {
    "picked_up",
    "in_transit",
    "exception",
    "available_for_pickup",
    "out_for_delivery",
    "delivery_attempted",
}


def _without_number(number: str) -> bytes:
    body = json.loads(
        envelopes.ups_alert(number, [Printed("arrive", envelopes.ZERO, "Phoenix", number)], 0)
    )
    return json.dumps(body | {"trackingNumber": None}).encode()


HOSTILE: Final[tuple[tuple[str, str | None, Callable[[str], bytes]], ...]] = (
    (
        "ups",
        "unreadable",
        lambda n: f'{{"trackingNumber":"{n}","activityStatus":{{"description":"{MARK}{n}'.encode(),
    ),
    ("ups", "unknown_format", lambda n: json.dumps({"hello": n}).encode()),
    ("ups", "no_tracking_number", _without_number),
    (
        "ups",
        "refused_xml",
        lambda n: (
            '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b'
            f' "{n}">]><TrackResponse>&b;</TrackResponse>'.encode()
        ),
    ),
    ("fedex", "too_complex", lambda n: b"[" * 5000 + n.encode() + b"]" * 5000),
    ("usps", "unreadable", lambda n: b"\xff\xfe\x00\x01<" + n.encode()),
    (
        "usps",
        "unreadable",
        lambda n: (
            f'<TrackResponse><TrackInfo ID="{n}">&undefined;</TrackInfo></TrackResponse>'.encode()
        ),
    ),
    (
        "canonical",
        "invalid_event",
        lambda n: json.dumps({"event_id": n, "tracking_number": n, "status": "delivered"}).encode(),
    ),
    (
        "fedex",
        None,
        lambda n: json.dumps({"errors": [{"code": "NOT.FOUND", "message": n}]}).encode(),
    ),
)
"""Bodies with their carrier and why nobody can read them; None: they can be read, and say
nothing.
"""


class Push(NamedTuple):
    """One body. `cause`: why it must end as a dead letter; `empty`: it is read, and says nothing.

    `last`: it may only be pushed when all before it took effect; `direct`: by `POST /v1/events`.

    """

    carrier_id: str
    body: bytes
    cause: str | None = None
    empty: bool = False
    last: bool = False
    direct: bool = False
    named: str = ""
    """Another number that the body names, by contradicting what is known."""


class Scan(NamedTuple):
    """Scan that must be in the history: when, under which code, with which meaning.

    `again`: the meaning that a correction gives it.
    """

    at: datetime
    code: str | None
    status: str | None
    event_id: str | None = None
    again: str | None = None
    withdrawn: bool = False

    @property
    def effective(self) -> str | None:
        return None if self.withdrawn else self.again or self.status or STRANGE_MEANS


@dataclass(slots=True, kw_only=True)
class Parcel:
    """A number with everything that is pushed about it.

    `erase_after`: the pushes after which the person asks to be forgotten.
    """

    carrier_id: str
    number: str
    pushes: list[Push] = field(default_factory=list)
    scans: list[Scan] = field(default_factory=list)
    conflicts: int = 0
    corrections: int = 0
    erase_after: int | None = None

    def expected(self) -> dict[str, Any]:
        """Return what must be found at the end."""
        status, flags = outcome(self.scans)
        return {
            "status": status,
            "flags": sorted(flags),
            "scans": [[scan.at.timestamp(), scan.code, scan.event_id] for scan in self.scans],
            "strange": sum(scan.status is None for scan in self.scans),
            "conflicts": self.conflicts,
            "corrections": self.corrections,
            "signed": MARK + self.number if status == "delivered" else None,
            "erased": self.erase_after is not None,
            "claimed": sorted({push.named for push in self.pushes if push.named}),
        }


def outcome(scans: Sequence[Scan]) -> tuple[str, set[str]]:
    """Return where simple histories end by the rules of the life cycle, in the order in
    which things happened.
    """
    status, flags = "unknown", set()
    for scan in sorted(scans, key=lambda each: each.at):
        to = scan.effective
        if to is None or to == status:
            continue
        if status == "delivered" and to not in {"returning", "returned"}:
            flags.add("backward" if to == "info_received" else "contradicted")
        elif status == "returning" and to in ACTIVE:
            continue
        elif to == "info_received" and status != "unknown":
            flags.add("backward")
        else:
            if status == "cancelled":
                flags.add("reopened")
            if to == "picked_up" and status in ACTIVE:
                flags.add("backward")
            status = to
    return status, flags


class _Carrier(NamedTuple):
    """Numbers and codes of a carrier.

    `alone`: each push says one scan, else the whole history again.
    """

    number: Callable[[int, random.Random], str]
    codes: Mapping[str, envelopes.Code]
    writers: tuple[Writer, ...]
    town: str
    alone: bool = False


_CARRIERS: Final[Mapping[str, _Carrier]] = {
    "ups": _Carrier(
        lambda n, _: f"1ZLEDG{n:012}", envelopes.UPS, (envelopes.ups_alert,), "Phoenix", alone=True
    ),
    "fedex": _Carrier(
        lambda n, _: f"77{n:010}",
        envelopes.FEDEX,
        (envelopes.fedex_ground, envelopes.fedex_express),
        "Tucson",
    ),
    "usps": _Carrier(
        lambda n, _: f"9400{n:018}",
        envelopes.USPS,
        (envelopes.usps, envelopes.usps_barcode),
        "Mesa",
    ),
    "dhl_express": _Carrier(
        lambda n, _: f"3{n:09}", envelopes.DHL_EXPRESS, (envelopes.dhl_express,), "Dubai"
    ),
    "easypost": _Carrier(
        lambda n, _: f"EZ{n:010}", envelopes.EASYPOST, (envelopes.easypost,), "Tempe"
    ),
    "dcsa": _Carrier(lambda n, _: f"LEDG{n:08}", envelopes.DCSA, (envelopes.dcsa,), "Jebel Ali"),
}


def parcels(rng: random.Random, now: datetime) -> Iterator[Parcel]:
    """Yield endless parcels.

    All carriers in turn, every fifth in our own format, now and then an unreadable body,
    every fortieth erased.
    """
    names = tuple(_CARRIERS)
    for number in count(1):
        if number % 12 == 5:
            yield _hostile(number)
            continue
        parcel = (
            _canonical(number, rng, now)
            if number % 4 == 0
            else _printed(names[number % len(names)], number, rng, now)
        )
        if number % 40 in {7, 32}:
            parcel.erase_after = (
                rng.randrange(2, len(parcel.pushes)) if number % 80 < 40 else len(parcel.pushes)
            )
            if parcel.carrier_id == "ups":
                # cut off before anyone can read whose it is: the number stands in it all the same
                parcel.pushes.insert(
                    0, Push("ups", HOSTILE[0][2](parcel.number), cause="unreadable")
                )
        yield parcel


def _hostile(number: int) -> Parcel:
    carrier_id, cause, write = HOSTILE[number // 12 % len(HOSTILE)]
    body = write(f"HOSTILE{number:09}")
    return Parcel(
        carrier_id=carrier_id,
        number="",
        pushes=[Push(carrier_id, body, cause=cause, empty=cause is None)],
    )


def _times(steps: int, rng: random.Random, now: datetime) -> list[datetime]:
    """Return whole minutes, all far from each other, the last one some minutes ago."""
    at = (now - timedelta(minutes=rng.randint(5, 50))).replace(second=0, microsecond=0)
    found = [at]
    while len(found) < steps:
        at -= timedelta(minutes=rng.randint(40, 400))
        found.append(at)
    return found[::-1]


def _printed(carrier_id: str, number: int, rng: random.Random, now: datetime) -> Parcel:
    carrier = _CARRIERS[carrier_id]
    journeys = [
        steps for journey in JOURNEYS if set(steps := journey.split()) <= carrier.codes.keys()
    ]
    steps = rng.choice(journeys)
    parcel = Parcel(carrier_id=carrier_id, number=carrier.number(number, rng))
    seen = [
        Printed(step, at, carrier.town, parcel.number)
        for step, at in zip(steps, _times(len(steps), rng, now), strict=True)
    ]
    native = [
        f"{parcel.number}-{place}@{parcel.number}" if carrier_id == "dcsa" else None
        for place in range(len(seen))
    ]
    parcel.scans = [
        Scan(
            each.at,
            "/".join(filter(None, carrier.codes[each.step].printed)),
            carrier.codes[each.step].status,
            event_id,
        )
        for each, event_id in zip(seen, native, strict=True)
    ]
    for place in range(len(seen)):
        write = carrier.writers[place % len(carrier.writers)]
        parcel.pushes.append(
            Push(
                carrier_id,
                write(
                    parcel.number,
                    seen[place : place + 1] if carrier.alone else seen[: place + 1],
                    place,
                ),
            )
        )
    _shuffle(parcel.pushes, rng)
    if carrier_id == "ups" and rng.random() < 0.4:
        # everything once more, in another of the carrier's formats
        parcel.pushes.append(Push("ups", envelopes.ups_xml(parcel.number, seen, 0)))
    if carrier_id == "dcsa":
        _retract_or_contradict(parcel, seen, rng)
    return parcel


def _shuffle(pushes: list[Push], rng: random.Random) -> None:
    """Shuffle: some overtake others, some come at last."""
    chance, place = rng.random(), rng.randrange(len(pushes) - 1)
    if chance < 0.2:
        pushes[place], pushes[place + 1] = pushes[place + 1], pushes[place]
    elif chance < 0.35:
        pushes.append(pushes.pop(place))


def _retract_or_contradict(parcel: Parcel, seen: Sequence[Printed], rng: random.Random) -> None:
    if rng.random() < 0.4:
        parcel.pushes.append(
            Push("dcsa", envelopes.dcsa_retraction(parcel.number, seen[-1], len(seen) - 1))
        )
        parcel.scans[-1] = parcel.scans[-1]._replace(withdrawn=True)
        parcel.corrections += 1
    elif rng.random() < 0.5:
        wrong = seen[1]._replace(at=seen[1].at - timedelta(minutes=3))
        parcel.pushes.append(Push("dcsa", envelopes.dcsa(parcel.number, [wrong], 1), last=True))
        parcel.conflicts += 1


def _canonical(number: int, rng: random.Random, now: datetime) -> Parcel:
    """Build a parcel whose sender chooses the ids, contradicts and corrects itself, cancels and
    goes on.
    """
    name = f"LEDGER{number:08}"
    parcel = Parcel(carrier_id="canonical", number=name)
    statuses = [
        "info_received",
        "picked_up",
        "in_transit",
        "exception",
        "out_for_delivery",
        "delivered",
    ]
    kind = number // 4 % 5
    if kind == 1:
        statuses = ["info_received", "cancelled", "in_transit", "out_for_delivery", "delivered"]
    times = _times(len(statuses) + 1, rng, now)
    parcel.scans = [
        Scan(at, None, status, f"{name}-{place}")
        for place, (status, at) in enumerate(zip(statuses, times[:-1], strict=True))
    ]
    bodies = [
        envelopes.canonical(name, f"{name}-{place}", scan.status, scan.at)
        for place, scan in enumerate(parcel.scans)
    ]
    if number % 8 == 0:
        bodies[1:3] = [b"\n".join(bodies[1:3])]
    parcel.pushes = [
        Push("canonical", body, direct=b"\n" not in body and rng.random() < 0.2) for body in bodies
    ]
    _shuffle(parcel.pushes, rng)
    if kind == 2:
        # taken back, at times before it was said
        taken = envelopes.canonical(
            name, f"{name}-t", None, times[-1], kind="correction", corrects=f"{name}-5"
        )
        parcel.pushes.insert(rng.randrange(len(parcel.pushes) + 1), Push("canonical", taken))
        parcel.scans[5] = parcel.scans[5]._replace(withdrawn=True)
        parcel.corrections += 1
    elif kind == 3:
        reread = envelopes.canonical(
            name,
            f"{name}-r",
            "delivery_attempted",
            times[-1],
            kind="correction",
            corrects=f"{name}-5",
        )
        parcel.pushes.append(Push("canonical", reread))
        parcel.scans[5] = parcel.scans[5]._replace(again="delivery_attempted")
        parcel.corrections += 1
    elif kind == 4:
        _contradict(parcel, name, rng)
    return parcel


def _contradict(parcel: Parcel, name: str, rng: random.Random) -> None:
    """Contradict by the same id with other facts: another status, or another parcel; the second
    twice in bodies of their own.
    """
    at = parcel.scans[2].at
    if rng.random() < 0.5:
        parcel.pushes.append(
            Push("canonical", envelopes.canonical(name, f"{name}-2", "lost", at), last=True)
        )
    else:
        other = f"OTHER{name}"
        for text in ("first", "again"):
            body = envelopes.canonical(
                other, f"{name}-2", "in_transit", at, description=f"{text} {MARK}{other}"
            )
            parcel.pushes.append(Push("canonical", body, last=True, named=other))
    parcel.conflicts += 1
