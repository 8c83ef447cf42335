"""Background work of a process: periodic jobs, waiting with a bound, ending a task for certain. Knows nothing of the service."""
