"""The connections of clients: how many a process takes, and how one moves to another process of this machine."""
