"""`statesvc doctor`: checks in turn, each of which answers with findings."""
