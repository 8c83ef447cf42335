"""Telling subscribers: each state change once, signed, in order per shipment, never faster than its receiver can take it.

A notification is written in the transaction that appends (`outbox`); the role claims (`claim`), sends (`sending`) and settles
(`settle`). Sending is at least once: a crash between sending and settling sends the same `webhook-id` again.
"""
