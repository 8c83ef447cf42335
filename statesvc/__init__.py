"""The service around the event log: ingress, worker, notifier, API, and the commands that run them."""

__version__ = "0.1.0"
