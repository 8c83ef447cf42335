"""`/v1/subscriptions`: the calls about who wants to know what."""
