"""The read API for internal teams and dispute agents, and the operator calls: HTTP on one side, `read` and its siblings on the other."""
