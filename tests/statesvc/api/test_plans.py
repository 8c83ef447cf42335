import re
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from events.vocabulary import Status
from statesvc.database.queries import queries
from statesvc.shipments.find import FoundShipment, find_shipment
from statesvc.shipments.shipment_list import END_OF_TIME

READ = "statesvc.shipments"
WINDOW = {"after": 0, "upto": 9, "limit": 10}


async def plan(api: Any, module: str, name: str, parameters: dict[str, Any]) -> str:
    cursor = await api.connection.execute("EXPLAIN " + queries(READ, module)[name], parameters)
    return "\n".join(row[0] for row in await cursor.fetchall())


@pytest.mark.parametrize(
    ("module", "name"), [("timeline", "events_of_shipment"), ("audit_trail", "recorded_events"), ("audit_trail", "transitions")]
)
async def test_only_the_months_of_the_shipments_own_life_are_read(api: Any, scan: Any, module: str, name: str) -> None:
    await api.carriers.say(scan("1", Status.IN_TRANSIT))
    found = await find_shipment(api.connection, carrier_id="ups", number="1")
    assert isinstance(found, FoundShipment)
    recorded = found.shipment.recorded()
    month = f"{recorded['since']:%Y%m}"
    assert set(re.findall(r"_(\d{6})\b", await plan(api, module, name, recorded | WINDOW))) == {month}
    longer = recorded | {"since": recorded["since"] - timedelta(days=31)}
    assert len(set(re.findall(r"_(\d{6})\b", await plan(api, module, name, longer | WINDOW)))) == 2


async def test_a_number_is_looked_up_by_its_index_and_a_shipments_events_by_theirs(api: Any) -> None:
    await api.connection.execute("SET enable_seqscan = off")
    asked = {"carrier_id": "ups", "number": "1", "shipment_id": None, "discriminator": None, "limit": 2}
    assert "Index Scan using shipment_number" in await plan(api, "find", "shipments_of_number", asked)
    life = {
        "shipment_id": "0190b1de-0000-7000-8000-000000000001",
        "since": datetime.now(UTC),
        "until": datetime.now(UTC),
        "event_id": "x",
    }
    for module, name in (("timeline", "events_of_shipment"), ("find", "sealed_part"), ("audit_trail", "recorded_events")):
        assert "Seq Scan" not in await plan(api, module, name, life | WINDOW)


async def test_a_number_alone_is_looked_up_by_its_index_and_open_shipments_by_theirs(api: Any) -> None:
    await api.connection.execute("SET enable_seqscan = off; SET enable_bitmapscan = off")
    asked: dict[str, Any] = {
        "carrier_id": None,
        "status": None,
        "reason": None,
        "service": None,
        "numbers": ["1"],
        "before": END_OF_TIME,
        "open": True,
        "ended": False,
    }
    asked |= {"after_recorded_at": END_OF_TIME, "after_shipment_id": UUID(int=0), "scan_max": 9, "limit": 2}
    assert "Index Scan using shipment_number" in await plan(api, "shipment_list", "list_shipments_of_number", asked)
    of_references = await plan(api, "shipment_list", "list_shipments_of_references", asked | {"carrier_ids": ["ups"]})
    assert "Index Scan using shipment_number" in of_references
    for name in ("list_shipments", "scan_end"):
        read = await plan(api, "shipment_list", name, asked)
        assert "using shipment_updated" in read
        assert re.search(r"Index Cond: \(\(terminal = false\) AND \(ROW\(recorded_at, shipment_id\) > ", read)
        assert "terminal = true" not in read


async def test_a_reference_is_looked_up_by_its_index(api: Any) -> None:
    await api.connection.execute("SET enable_seqscan = off")
    read = await plan(api, "references", "numbers_of_reference", {"digest": b"x", "limit": 2})
    assert "Bitmap Index Scan on shipment_references_digest" in read
