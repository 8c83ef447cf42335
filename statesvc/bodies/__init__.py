"""Bodies of messages: in the database, in their day's archive, or retained for a waiting message.

`find` returns the sealed body of a message. `archiver` moves whole days: write > verify > keep
bodies of waiting messages > drop > expire.
"""
