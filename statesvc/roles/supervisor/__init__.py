"""`statesvc up`: one child process per role, restarted when one dies, stopped together."""
