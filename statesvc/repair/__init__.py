"""Repairs: dead letters, and what history reads as now (renormalize)."""
