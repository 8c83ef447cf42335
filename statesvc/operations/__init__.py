"""What operators see of a running installation: which processes work here, notices, and the upkeep of its tables."""
