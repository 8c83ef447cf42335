"""Shipments as they are read and stored: state, history, audit trail, as of an instant, and the
rebuild of their projection.
"""
