"""The spool before the inbox: keeps sealed messages durably while the database does not answer."""
