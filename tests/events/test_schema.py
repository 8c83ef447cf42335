from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

import orjson
import pytest
from jsonschema_rs import Draft202012Validator
from pydantic import TypeAdapter

from events.carriers.canonical import read_line
from events.entry.kinds import Provenance, event_document, leaf
from events.event import Event as CarrierEvent
from events.event import EventPlace, Personal, Raw
from events.identity.ids import numbered
from events.schema.declaration import schema
from events.vocabulary import Kind, Reason, Status, TimePrecision, TzSource
from projections.fact import fact_from_canonical
from statesvc.shipments.models import ShipmentEvent
from statesvc.shipments.personal import Opener
from statesvc.shipments.timeline import Seal, shipment_event
from tests import schema_check
from tests.contract import closed_words
from tests.schema_growth import Shape, shapes

NOON: Final = datetime(2026, 11, 21, 12, 0, 0, 5, tzinfo=UTC)

SCANT: Final = CarrierEvent(
    carrier_id="ups",
    event_id="d1-261121-abc",
    tracking_number="1Z",
    discriminator="",
    numbered=numbered("ups", "1Z", ""),
    kind=Kind.UNMAPPED,
    occurred_at=NOON,
    occurred_at_raw="",
    tz_source=TzSource.RECEIVED,
    time_precision=TimePrecision.SECOND,
    status=None,
    reason=None,
    carrier_code=None,
    raw=Raw(),
    raw_zone=None,
    location=EventPlace(),
)
FULL: Final = CarrierEvent(
    carrier_id="ups",
    event_id="d1-261121-abd",
    tracking_number="1Z",
    discriminator="D",
    numbered=numbered("ups", "1Z", "D"),
    kind=Kind.CORRECTION,
    occurred_at=NOON,
    occurred_at_raw="20261121 120000",
    tz_source=TzSource.PAIR,
    time_precision=TimePrecision.MINUTE,
    status=Status.EXCEPTION,
    reason=Reason.WEATHER,
    carrier_code="X/Y/Z",
    raw=Raw(type="X", code="Y", reason="Z", further=("1", "2")),
    raw_zone="+01:00",
    location=EventPlace(city="Reno", region="NV", postal_code="89501", country="US", facility="F"),
    piece="P",
    by_category=True,
    time_flag="ambiguous",
    estimated_delivery="2026-11-22",
    service="UPS Ground",
    parcel_carrier_id="ups",
    corrects="d1-261121-abc",
    anchor="d1-261121-abc",
    stamp="S",
    personal=Personal(description="d", signed_by="s", delivery_address="a"),
)


def logged(event: CarrierEvent, digest: bytes | None = b"\x01" * 32) -> Any:
    """Return an event as the log keeps it, parsed."""
    shipment_id = UUID(int=1)
    source = Provenance(
        message_id=UUID(int=2),
        body_commitment=bytes(32),
        received_at=NOON,
        normalizer="ups",
        normalizer_version="1",
        notify=False,
    )
    document = event_document(
        event,
        source=source,
        shipment_id=shipment_id,
        version=1,
        recorded_at=NOON,
        previous_hash=bytes(32),
        part_commitment=digest,
        signer_digest=digest,
    )
    return orjson.loads(leaf(document, epoch=1).canonical)


def printed(document: dict[str, Any], *, pii: bool = True) -> dict[str, Any]:
    opener = Opener(shipment_id=UUID(int=1), key=None) if pii else None
    return {**shipment_event(document, Seal(None, None), sealed_part=None, opener=opener)}


def refusals(document: dict[str, Any], name: str) -> list[str]:
    validator = Draft202012Validator({**schema(), "$ref": f"#/$defs/{name}"})
    return [error.message for error in validator.iter_errors(document)]


def fields(name: str) -> dict[str, Shape]:
    return {
        place.removeprefix(f"{name}/"): shape
        for place, shape in shapes(schema()).items()
        if place.startswith(f"{name}/")
    }


def leaves(document: dict[str, Any]) -> set[str]:
    found = set(document)
    return found.union(
        *(
            {f"{name}/{part}" for part in value}
            for name, value in document.items()
            if isinstance(value, dict)
        )
    )


def unknown(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document as a later version may write it."""
    more = {"unheard_of": {"a": [1, None]}, "zz": "x"}
    return {
        name: value | more if isinstance(value, dict) else value for name, value in document.items()
    } | more


def test_the_committed_schema_is_the_declared_one_and_only_grew() -> None:
    assert schema_check.faults(schema_check.committed(), schema()) + schema_check.changed() == []


@pytest.mark.parametrize("event", [SCANT, FULL], ids=["scant", "full"])
def test_the_log_and_the_api_write_what_is_declared(event: CarrierEvent) -> None:
    document = logged(event, None if event is SCANT else b"\x01" * 32)
    assert (
        refusals(document, "logged")
        == refusals(printed(document), "printed")
        == refusals(printed(document, pii=False), "printed")
        == []
    )


def test_nothing_is_written_that_is_not_declared_and_nothing_declared_is_never_written() -> None:
    assert leaves(logged(FULL)) == {place for place in fields("logged") if not place.endswith("*")}
    assert leaves(printed(logged(FULL))) == set(fields("printed"))


def test_the_models_of_the_api_say_what_is_declared() -> None:
    model = closed_words(TypeAdapter(ShipmentEvent).json_schema(mode="serialization"))
    root = {
        "$defs": {
            **model["$defs"],
            "printed": {key: value for key, value in model.items() if key != "$defs"},
        }
    }
    modelled = {
        place: shape for place, shape in shapes(root).items() if place.startswith("printed/")
    }
    declared = {
        place: shape for place, shape in shapes(schema()).items() if place.startswith("printed/")
    }
    assert {
        place: (shape.types, shape.words, shape.required) for place, shape in modelled.items()
    } == {place: (shape.types, shape.words, shape.required) for place, shape in declared.items()}


@pytest.mark.parametrize("event", [SCANT, FULL], ids=["scant", "full"])
def test_fields_of_a_later_version_change_nothing_for_the_fold_and_the_api(
    event: CarrierEvent,
) -> None:
    document = logged(event)
    later = unknown(document)
    assert fact_from_canonical(later) == fact_from_canonical(document)
    assert fact_from_canonical(later).key == fact_from_canonical(document).key
    assert printed(later) == printed(document)
    assert refusals(later, "logged") == refusals(unknown(printed(document)), "printed") == []


def test_a_sender_may_state_fields_of_a_later_version() -> None:
    stated = {
        "carrier_id": "ups",
        "event_id": "1",
        "tracking_number": "1Z",
        "occurred_at": NOON.isoformat(),
        "status": "delivered",
        "location": {"city": "Reno"},
    }
    assert read_line(orjson.dumps(unknown(stated)), lambda _: bytes) == read_line(
        orjson.dumps(stated), lambda _: bytes
    )
