"""Months of the log as Parquet files: written, compared, taken out of the database, and read again when an old entry is needed.

`docs/log-archive.md` has the format and the guarantees. pyarrow is imported only where a file is open.
"""
