"""Expectations: shipments are checked when something expected of them is overdue, and an observation is recorded."""
