"""A key management service that holds the master key: it wraps one root key of ours, and unwraps it
when a process starts.
"""
