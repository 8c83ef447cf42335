"""Delivery of a notification: its body, target, signature, pace, and the receiver's answer."""
