import re
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from psycopg import AsyncConnection

from events.vocabulary import Status
from statesvc.database.queries import queries
from statesvc.shipments.find import FoundShipment, find_shipment
from statesvc.shipments.shipment_list import AFTER_ALL, BEGINNING_OF_TIME, END_OF_TIME

READ = "statesvc.shipments"
WINDOW = {"after": 0, "upto": 9, "limit": 10}


async def plan(api: Any, module: str, name: str, parameters: dict[str, Any]) -> str:
    return "\n".join(
        row[0] for row in await api.rows("EXPLAIN " + queries(READ, module)[name], parameters)
    )


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("timeline", "events_of_shipment"),
        ("audit_trail", "recorded_events"),
        ("audit_trail", "transitions"),
    ],
)
async def test_only_the_months_of_the_shipments_own_life_are_read(
    api: Any, scan: Any, module: str, name: str
) -> None:
    await api.carriers.push(scan("1", Status.IN_TRANSIT))
    found = await find_shipment(api.connection, carrier_id="ups", number="1")
    assert isinstance(found, FoundShipment)
    recorded = found.shipment.recorded()
    month = f"{recorded['since']:%Y%m}"
    assert set(re.findall(r"_(\d{6})\b", await plan(api, module, name, recorded | WINDOW))) == {
        month
    }
    longer = recorded | {"since": recorded["since"] - timedelta(days=31)}
    assert len(set(re.findall(r"_(\d{6})\b", await plan(api, module, name, longer | WINDOW)))) == 2


async def test_a_number_is_looked_up_by_its_index_and_a_shipments_events_by_theirs(
    api: Any,
) -> None:
    await api.connection.execute("SET enable_seqscan = off")
    asked = {
        "carrier_id": "ups",
        "number": "1",
        "shipment_id": None,
        "discriminator": None,
        "limit": 2,
    }
    assert "Index Scan using shipment_number" in await plan(
        api, "find", "shipments_of_number", asked
    )
    life = {
        "shipment_id": "0190b1de-0000-7000-8000-000000000001",
        "since": datetime.now(UTC),
        "until": datetime.now(UTC),
        "event_id": "x",
    }
    for module, name in (
        ("timeline", "events_of_shipment"),
        ("find", "sealed_part"),
        ("audit_trail", "recorded_events"),
    ):
        assert "Seq Scan" not in await plan(api, module, name, life | WINDOW)


async def test_a_number_alone_is_looked_up_by_its_index_and_open_shipments_by_theirs(
    api: Any,
) -> None:
    await api.connection.execute("SET enable_seqscan = off; SET enable_bitmapscan = off")
    asked: dict[str, Any] = {
        "carrier_id": None,
        "status": None,
        "reason": None,
        "service": None,
        "flag": None,
        "statuses": None,
        "since": BEGINNING_OF_TIME,
        "before": END_OF_TIME,
        "newest": False,
        "open": True,
        "ended": False,
    }
    asked |= {
        "after_recorded_at": END_OF_TIME,
        "after_shipment_id": UUID(int=0),
        "scan_max": 9,
        "limit": 2,
    }
    for carrier_id in (None, "ups"):
        of_numbers = {"carrier_ids": [carrier_id], "numbers": ["1"]}
        assert "Index Scan using shipment_number" in await plan(
            api, "shipment_list", "list_shipments_of_numbers", asked | of_numbers
        )
    for name in ("list_shipments", "scan_end"):
        read = await plan(api, "shipment_list", name, asked)
        assert "using shipment_updated" in read
        assert re.search(
            r"Index Cond: \(\(terminal = false\) AND \(ROW\(recorded_at, shipment_id\) > ", read
        )
        assert "terminal = true" not in read
    for name in ("list_newest_shipments", "newest_scan_end"):
        read = await plan(api, "shipment_list", name, asked)
        assert (
            "Index Scan Backward using shipment_updated" in read
            or "Index Only Scan Backward using shipment_updated" in read
        )
        assert re.search(
            r"Index Cond: \(\(terminal = false\) AND \(ROW\(recorded_at, shipment_id\) < ", read
        )
    part: dict[str, Any] = {"since": "543", "until": "543\U0010ffff", "limit": 9}
    assert "Index Cond: ((number ~>=~ " in await plan(
        api, "shipment_list", "numbers_beginning", part
    )
    assert "Index Scan using stream_number_end" in await plan(
        api, "shipment_list", "numbers_ending", part
    )


async def test_a_search_by_number_reads_nothing_to_be_planned(
    api: Any, scan: Any, owner: AsyncConnection[Any]
) -> None:
    for number in range(40):
        await api.carriers.push(scan(str(number), Status.IN_TRANSIT))
    await owner.execute("ANALYZE")
    asked: dict[str, Any] = dict.fromkeys(
        ("carrier_id", "status", "reason", "service", "flag", "statuses")
    )
    asked |= {"numbers": ["7"], "open": True, "ended": True, "limit": 2}
    asked |= {"newest": False, "since": BEGINNING_OF_TIME, "before": END_OF_TIME}
    asked |= {"after_recorded_at": BEGINNING_OF_TIME, "after_shipment_id": AFTER_ALL}
    listed = queries(READ, "shipment_list")["list_shipments_of_numbers"]
    for carrier_id in (None, "ups"):
        explained = "EXPLAIN (ANALYZE, BUFFERS, SUMMARY OFF) " + listed
        for _ in range(2):
            rows = [
                row[0] for row in await api.rows(explained, asked | {"carrier_ids": [carrier_id]})
            ]
        assert "actual" in rows[0]
        # the second time the catalogue is known: what is left were the ends of keys, two of each
        read = (
            [row for row in rows[rows.index("Planning:") :] if "Buffers" in row]
            if "Planning:" in rows
            else []
        )
        assert sum(map(int, re.findall(r"(?:hit|read)=(\d+)", "".join(read)))) < 4, rows


async def test_a_reference_is_looked_up_by_its_index(api: Any) -> None:
    await api.connection.execute("SET enable_seqscan = off")
    read = await plan(api, "references", "numbers_of_reference", {"digest": b"x", "limit": 2})
    assert "Bitmap Index Scan on shipment_references_digest" in read
