"""What operators see of an installation: its running processes, notices, and the upkeep of its tables."""
