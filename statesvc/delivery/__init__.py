"""Delivery of a notification: what is sent and where, how it is signed, what the receiver answers, and how fast it may be notified."""
