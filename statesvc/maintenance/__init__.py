"""The upkeep of tables: partitions, retention, due times, and how the disk grows."""
