"""The service around the event log: ingress, worker, notifier, API, and the commands that run them."""
