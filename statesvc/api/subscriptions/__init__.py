"""`/v1/subscriptions`: calls about webhook subscriptions."""
