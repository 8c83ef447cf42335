"""Notifying subscribers: of each state change once, signed, in order per shipment, never faster
than its receiver can take it.

A notification is written in the transaction that appends; the role takes it through three steps,
which `notifier_loop` drives: `claim_outbox` leases it, `attempts` sends it under the permits of
`statesvc.delivery.limiter`, `settle` records the outcome. Sending is at least once: a crash between
sending and settling sends the same `webhook-id` again.
"""
