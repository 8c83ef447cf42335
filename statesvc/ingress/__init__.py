"""Webhooks in: authenticate on the raw bytes, seal, store durably, acknowledge. A body is never
parsed here.
"""
