"""Rows of a report as a file: CSV, or Parquet with the extra `archive`."""

import csv
import io
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any, Final, Literal

import orjson

ReportFormat = Literal["csv", "parquet"]
MEDIA_TYPES: Final[Mapping[str, str]] = {
    "csv": "text/csv",
    "parquet": "application/vnd.apache.parquet",
}
# A spreadsheet computes a cell that begins so; a carrier writes the numbers.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")

_DATES: Final = frozenset({"month", "promised_for"})
_TEXTS: Final = frozenset(
    {
        "carrier_id",
        "service",
        "lane",
        "tracking_number",
        "discriminator",
        "shipment_id",
        "status",
        "delay_days",
    }
)


class ParquetUnavailableError(RuntimeError):
    """The extra `archive` is not installed."""


def as_file(
    rows: Sequence[Mapping[str, Any]], columns: Sequence[str], file_format: ReportFormat
) -> bytes:
    """Format all rows, a column for each name; objects become JSON.

    Raises ParquetUnavailableError.
    """
    return _csv(rows, columns) if file_format == "csv" else _parquet(rows, columns)


def _csv(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> bytes:
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(columns)
    writer.writerows([_cell(row[name]) for name in columns] for row in rows)
    return out.getvalue().encode()


def _cell(value: object) -> object:
    if isinstance(value, str):
        return f"'{value}" if value.startswith(_FORMULA) else value
    if isinstance(value, (date, datetime)):
        return value.isoformat()
    return orjson.dumps(value).decode() if isinstance(value, dict) else value


def _parquet(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> bytes:
    try:
        import pyarrow as pa  # noqa: PLC0415 - an extra
        import pyarrow.parquet as pq  # noqa: PLC0415 - as above
    except ImportError as error:
        raise ParquetUnavailableError(
            "Parquet needs the extra: pip install 'statesvc[archive]'"
        ) from error
    table = pa.table(
        {
            name: pa.array([_plain(row[name]) for row in rows], _arrow_type(pa, name))
            for name in columns
        }
    )
    out = io.BytesIO()
    pq.write_table(table, out, compression="zstd")
    return out.getvalue()


def _arrow_type(pa: Any, name: str) -> Any:  # noqa: ANN401 - of a module that may be absent
    """Return the type by the column's name, so that an empty file has the types of a full file."""
    if name.endswith(("_at", "_until")):
        return pa.timestamp("us", tz="UTC")
    if name in _DATES:
        return pa.date32()
    if name == "on_time_share":
        return pa.float64()
    return pa.string() if name in _TEXTS else pa.int64()


def _plain(value: object) -> object:
    if isinstance(value, (str, int, float, date, datetime)) or value is None:
        return value
    return orjson.dumps(value).decode() if isinstance(value, dict) else str(value)
