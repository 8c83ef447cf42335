"""`statesvc up`: a child process per role, restarted when it dies, stopped together."""
