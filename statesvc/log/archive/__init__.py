"""Months of the log as Parquet files: written, compared, taken out of the database, and read again by whoever needs an old entry.

`docs/log-archive.md` has the format and the guarantees. pyarrow is imported only where a file is open.
"""
