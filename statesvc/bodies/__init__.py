"""Bodies of messages: hot in the database, in the archive of their day, or retained because their message still waits.

`find` answers "the sealed body of this message". `archiver` moves whole days: write > verify > keep what waits > drop > expire.
"""
