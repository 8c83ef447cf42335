"""The command line's table of calls is that of the operations."""

from statesvc.cli.operation_table import operation_named
from tests.operation_table import FILE, operation_table, written


def test_the_table_is_up_to_date() -> None:
    assert FILE.read_bytes() == written(), "run python -m tests.operation_table"


def test_each_operation_can_be_read_from_it() -> None:
    for operation_id in operation_table():
        assert operation_named(operation_id).where.startswith(
            ("GET /v1/", "POST /v1/", "PUT /v1/", "PATCH /v1/", "DELETE /v1/")
        )
