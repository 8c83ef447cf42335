"""Rules for whatever a normalizer makes of a body, known or not.

A broken rule is an AssertionError that names it.
"""

import hmac
import time
import tracemalloc
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID

import orjson

from events.carriers.carrier import Carrier
from events.entry.kinds import Provenance, conflict_document, event_document, leaf, part_bytes
from events.errors import Cause, UnreadableMessageError
from events.event import Event, Normalized, Reading
from events.identity.ids import enrichment_id, identify, shipment_id, value_digest
from events.parsing.whereabouts import load_tables
from events.spelling import normalize_number
from events.vocabulary import Kind, Reason, Status, TimePrecision, TzSource
from projections.fact import Fact, fact_from_canonical
from projections.fold import fold
from tests.projections.stated_fact import fact_of

RECEIVED_AT: Final = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
SECONDS_MAX: Final = 0.25
SECONDS_PER_MIB_MAX: Final = 2.0
"""CPU time of reading one body, by its size: ten times what it takes and more, so that only what
grows faster than the body shows.
"""
READINGS_AGAIN: Final = 4
"""Readings of a body that took too long, before it counts as slow."""
MEMORY_MAX: Final = 4 * 1024 * 1024
MEMORY_TIMES_MAX: Final = 60
"""Memory of reading one body: so much, and so many times its size."""
EVENT_ID_BYTES_MAX: Final = 2500
"""Bytes that an index of PostgreSQL takes as a key, with room for the carrier."""
DETAIL_MAX: Final = 300

CAUSES: Final = frozenset(
    {
        Cause.UNREADABLE,
        Cause.REFUSED_XML,
        Cause.TOO_COMPLEX,
        Cause.UNKNOWN_FORMAT,
        Cause.NO_TRACKING_NUMBER,
        Cause.INVALID_EVENT,
    }
)
_OFFSET_MAX: Final = timedelta(hours=15)


def examine(carrier: Carrier, body: bytes, *, weigh: bool = False) -> str:
    """Examine a body; return a cause, `empty`, or `events`.

    `weigh` bounds the memory of reading it, too (slow).
    """
    if weigh:
        _weigh(carrier, body)
    try:
        normalized = _timed(carrier, body)
    except UnreadableMessageError as error:
        _declared(error)
        return error.cause.value
    _examine(normalized, carrier)
    return "events" if normalized.readings else "empty"


def _timed(carrier: Carrier, body: bytes) -> Normalized:
    bound = SECONDS_MAX + SECONDS_PER_MIB_MAX * len(body) / 2**20
    started = time.thread_time()
    try:
        return carrier.normalizers[carrier.stable](body, RECEIVED_AT)
    finally:
        spent = time.thread_time() - started
        if (
            spent > bound
        ):  # a collection of garbage falls into one reading, what grows with the body shows in each
            spent = min(_seconds(carrier, body) for _ in range(READINGS_AGAIN))
        assert spent <= bound, f"{spent:.2f} s for a body of {len(body)} bytes"


def _seconds(carrier: Carrier, body: bytes) -> float:
    started = time.thread_time()
    with suppress(UnreadableMessageError):
        carrier.normalizers[carrier.stable](body, RECEIVED_AT)
    return time.thread_time() - started


def _weigh(carrier: Carrier, body: bytes) -> None:
    load_tables()
    tracemalloc.start()
    try:
        with suppress(UnreadableMessageError):
            carrier.normalizers[carrier.stable](body, RECEIVED_AT)
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak <= MEMORY_MAX + MEMORY_TIMES_MAX * len(body), (
            f"{peak >> 20} MiB for a body of {len(body)} bytes"
        )


def _examine(normalized: Normalized, carrier: Carrier) -> None:
    assert type(normalized) is Normalized, "not a Normalized"
    for rejection in normalized.rejections:
        assert rejection.why, "a rejection without a why"
        assert len(rejection.why) <= DETAIL_MAX, "the why of a rejection quotes the body"
        _storable("rejection.pointer", rejection.pointer)
    facts: dict[UUID, dict[str, Fact]] = {}
    for reading in normalized.readings:
        _check_reading(reading)
        event = _identified(reading, carrier)
        if event is not None and normalize_number(event.tracking_number):
            number = normalize_number(event.tracking_number)
            told = facts.setdefault(
                shipment_id(carrier.carrier_id, number, event.discriminator), {}
            )
            told.setdefault(event.event_id, _logged(event, number))
    for told in facts.values():
        in_order = list(told.values())
        assert fold(in_order) == fold(reversed(in_order)), (
            "the state depends on the order of arrival"
        )


def _declared(error: UnreadableMessageError) -> None:
    assert error.cause in CAUSES, f"a normalizer may not say {error.cause}"
    assert len(error.detail) <= DETAIL_MAX, "the detail of an error quotes the body"


def _check_reading(reading: Reading) -> None:
    """Check what the types promise and the database takes."""
    assert type(reading.kind) is Kind, "kind"
    assert reading.status is None or type(reading.status) is Status, "status"
    assert reading.status is not Status.UNKNOWN, "`unknown` is the initial state only"
    assert reading.reason is None or type(reading.reason) is Reason, "reason"
    assert (reading.kind is not Kind.SCAN) or reading.status is not None, "a scan without a status"
    assert reading.kind not in (Kind.INFO, Kind.UNMAPPED) or reading.status is None, (
        f"{reading.kind} with a status"
    )
    moment, place, raw = reading.time, reading.place, reading.raw
    assert type(moment.tz_source) is TzSource, "tz_source"
    assert type(moment.precision) is TimePrecision, "time_precision"
    assert moment.instant.utcoffset() is not None, "a time without offset"
    assert abs(moment.instant.utcoffset() or timedelta()) <= _OFFSET_MAX, (
        "an offset beyond 15 hours"
    )
    assert 1 <= moment.instant.astimezone(UTC).year <= 9999, "a time outside the years 1 to 9999"
    optional = {
        "tracking_number": reading.tracking_number,
        "piece": reading.piece,
        "native_id": reading.native_id,
        "description": reading.description,
        "signed_by": reading.signed_by,
        "delivery_address": reading.delivery_address,
        "estimated_delivery": reading.estimated_delivery,
        "service": reading.service,
        "corrects": reading.corrects,
        "zone": moment.zone,
        "flag": moment.flag,
        "raw.type": raw.type,
        "raw.code": raw.code,
        "raw.reason": raw.reason,
        "place.city": place.city,
        "place.region": place.region,
        "place.postal_code": place.postal_code,
        "place.country": place.country,
        "place.facility": place.facility,
    }
    for name, value in optional.items():
        if value is not None:
            _storable(name, value)
    for name, value in (
        ("discriminator", reading.discriminator),
        ("stamp", reading.stamp),
        ("printed", moment.printed),
    ):
        _storable(name, value)
    _storable("identity", moment.identity)
    assert type(raw.further) is tuple, "raw.further"
    for code in raw.further:
        _storable("raw.further", code)


def _storable(name: str, value: object) -> None:
    assert type(value) is str, f"{name} is of type {type(value).__name__}"
    assert "\x00" not in value, f"{name} holds a NUL"
    assert value.isascii() or not any("\ud800" <= character <= "\udfff" for character in value), (
        f"{name} holds a surrogate"
    )


def _identified(reading: Reading, carrier: Carrier) -> Event | None:
    try:
        event = identify(
            reading, carrier_id=carrier.carrier_id, digest=_digest, allow_unnumbered=True
        )
    except UnreadableMessageError as error:
        _declared(error)
        return None
    assert 0 < len(event.event_id.encode()) <= EVENT_ID_BYTES_MAX, (
        "the event id is no key of an index"
    )
    return event


def _logged(event: Event, number: str) -> Fact:
    """Return the fact of the event, after all of its entries were built and read back."""
    shipment = shipment_id(event.carrier_id, number, event.discriminator)
    source = Provenance(
        message_id=UUID(int=1),
        body_commitment=bytes(32),
        received_at=RECEIVED_AT,
        normalizer=event.carrier_id,
        normalizer_version="1",
    )
    signer = event.personal.signed_by
    signer_digest = None if signer is None else _digest(signer.encode())
    facts = event.facts_digest
    if event.estimated_delivery is not None:
        value = value_digest(
            shipment_id=shipment,
            field="estimated_delivery",
            value=event.estimated_delivery,
            stamp=event.stamp,
            digest=_digest,
        )
        enrichment_id(anchor=event.event_id, value=value)
    part_bytes(event.personal)
    conflict = conflict_document(
        event,
        source=source,
        shipment_id=shipment,
        claimed_shipment_id=shipment,
        recorded_at=RECEIVED_AT,
        facts_digest=facts,
        part_commitment=facts,
    )
    leaf(conflict, epoch=1)
    document = event_document(
        event,
        source=source,
        shipment_id=shipment,
        version=1,
        recorded_at=RECEIVED_AT,
        previous_hash=bytes(32),
        part_commitment=facts,
        signer_digest=signer_digest,
    )
    told = fact_of(event, signer_digest=signer_digest, version=1)
    assert fact_from_canonical(orjson.loads(leaf(document, epoch=1).canonical)) == told, (
        "the log reads back another fact"
    )
    return told


def _digest(data: bytes) -> bytes:
    return hmac.digest(b"fuzz", data, "sha256")
