import copy
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
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
from tests.schema_growth import Shape, breaks, shapes
from tests.schema_versions import FOLDER, committed, faults

NOON: Final = datetime(2026, 11, 21, 12, 0, 0, 5, tzinfo=UTC)
Change = Callable[[dict[str, Any]], object]

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
    assert faults(committed(), schema()) + schema_check.changed() == []


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


def removed(new: dict[str, Any]) -> None:
    del new["$defs"]["printed"]["properties"]["piece"]


def renamed(new: dict[str, Any]) -> None:
    properties = new["$defs"]["logged"]["properties"]
    properties["parcel"] = properties.pop("piece")


def property_of(new: dict[str, Any], name: str, definition: str = "printed") -> dict[str, Any]:
    found: dict[str, Any] = new["$defs"][definition]["properties"][name]
    return found


BREAKS: Final[dict[str, tuple[Change, str]]] = {
    "removed": (removed, "printed/piece: removed or renamed"),
    "renamed": (renamed, "logged/piece: removed or renamed"),
    "removed from a part": (
        lambda new: property_of(new, "location")["properties"].pop("city"),
        "printed/location/city: removed or renamed",
    ),
    "removed a whole shape": (
        lambda new: new["$defs"].pop("printed"),
        "printed: removed or renamed",
    ),
    "retyped": (
        lambda new: property_of(new, "version").update(type="string"),
        "printed/version: retyped",
    ),
    "null where there was none": (
        lambda new: property_of(new, "event_id").update(type=["string", "null"]),
        "printed/event_id: retyped",
    ),
    "never null any more": (
        lambda new: property_of(new, "piece").update(type="string"),
        "printed/piece: retyped",
    ),
    "retyped members": (
        lambda new: property_of(new, "raw", "logged")["properties"]["further"]["items"].update(
            type="integer"
        ),
        "logged/raw/further/*: retyped",
    ),
    "a format less": (
        lambda new: property_of(new, "occurred_at").pop("format"),
        "printed/occurred_at: retyped",
    ),
    "another format": (
        lambda new: property_of(new, "occurred_at").update(format="date"),
        "printed/occurred_at: narrowed by `format`",
    ),
    "a word less": (
        lambda new: property_of(new, "status", "logged")["enum"].remove("lost"),
        "logged/status: narrowed, without 'lost'",
    ),
    "a list of words": (
        lambda new: property_of(new, "carrier_id").update(enum=["ups"]),
        "printed/carrier_id: narrowed, to a list of words",
    ),
    "a pattern": (
        lambda new: property_of(new, "event_id").update(pattern="^d1-"),
        "printed/event_id: narrowed by `pattern`",
    ),
    "a bound": (
        lambda new: property_of(new, "carrier_code").update(maxLength=9),
        "printed/carrier_code: narrowed by `maxLength`",
    ),
    "a higher minimum": (
        lambda new: property_of(new, "version").update(minimum=1),
        "printed/version: narrowed by `minimum`",
    ),
    "closed": (
        lambda new: new["$defs"]["logged"].update(additionalProperties=False),
        "logged: narrowed by `additionalProperties`",
    ),
    "a keyword nobody knows": (
        lambda new: property_of(new, "raw", "logged").update({"not": {}}),
        "logged/raw: narrowed by `not`",
    ),
    "newly required": (
        lambda new: new["$defs"]["logged"]["required"].append("piece"),
        "logged/piece: now required",
    ),
    "required no more": (
        lambda new: new["$defs"]["logged"]["required"].remove("raw"),
        "logged/raw: no longer required",
    ),
    "new and required": (
        lambda new: (
            property_of(new, "location").update(required=["dock"]),
            property_of(new, "location")["properties"].update(dock={}),
        ),
        "printed/location/dock: new and required",
    ),
}


@pytest.mark.parametrize("name", BREAKS)
def test_a_change_that_breaks_a_reader_is_named(name: str) -> None:
    change, line_start = BREAKS[name]
    new = copy.deepcopy(schema())
    change(new)
    assert any(line.startswith(line_start) for line in breaks(schema(), new))
    assert any(line_start in line for line in faults({1: schema()}, new))
    assert any(
        line.startswith(f"2.json against 1.json: {line_start}")
        for line in faults({1: schema(), 2: new}, new)
    )


ADDITIONS: Final[dict[str, Change]] = {
    "a field": lambda new: new["$defs"]["logged"]["properties"].update(
        container={"type": "string"}
    ),
    "a field of a part": lambda new: property_of(new, "location")["properties"].update(
        dock={"type": "string"}
    ),
    "a part with a field that it always has": lambda new: new["$defs"]["printed"][
        "properties"
    ].update(
        vessel={"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    ),
    "a shape": lambda new: new["$defs"].update(
        conflict={"type": "object", "properties": {"a": {}}, "required": ["a"]}
    ),
    "a word": lambda new: property_of(new, "reason")["enum"].append("locker_full"),
    "a lower minimum": lambda new: property_of(new, "version").update(minimum=-1),
    "a pattern less": lambda new: property_of(new, "previous_hash", "logged").pop("pattern"),
    "other words about it": lambda new: property_of(new, "piece").update(description="One box"),
}


@pytest.mark.parametrize("name", ADDITIONS)
def test_an_addition_is_allowed_as_a_new_version(name: str) -> None:
    new = copy.deepcopy(schema())
    ADDITIONS[name](new)
    assert breaks(schema(), new) == []
    assert faults({1: schema(), 2: new}, new) == []
    assert [line for line in faults({1: schema()}, new) if "writes it down" in line] != []


def test_a_version_that_has_landed_may_not_change(tmp_path: Path) -> None:
    def git(*arguments: str) -> None:
        identity = ("-c", "user.name=a", "-c", "user.email=a@example.test")
        subprocess.run(
            ["git", "-C", tmp_path, *identity, *arguments], check=True, capture_output=True
        )

    folder = tmp_path / FOLDER
    folder.mkdir(parents=True)
    (folder / "1.json").write_text("{}\n")
    git("init", "--initial-branch=main")
    git("add", ".")
    git("commit", "-m", "land")
    git("checkout", "-b", "change")
    (folder / "2.json").write_text("{}\n")
    git("add", ".")
    git("commit", "-m", "grow")
    (folder / "2.json").write_text("{ }\n")
    assert schema_check.changed(tmp_path) == []
    (folder / "1.json").write_text("{ }\n")
    git("commit", "-am", "rewrite")
    assert [line.split()[0] for line in schema_check.changed(tmp_path)] == ["1.json"]
    git("checkout", "main")
    git("merge", "change", "--no-ff", "-m", "land the rewrite")
    assert [line.split()[0] for line in schema_check.changed(tmp_path)] == ["1.json"]


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
