"""Bodies of messages, wherever they are: hot in the database, in the archive of their day, or retained because they still wait.

`find` answers "the sealed body of this message". `archiver` moves whole days: write > verify > keep what waits > drop > expire.
"""
