"""Meaning of the events: the life cycle, a shipment's state as a pure fold, and the
rows that readers see.
"""
