"""Background work of a process: periodic jobs, bounded waits, reliable cancellation.

It does not depend on the service.
"""
