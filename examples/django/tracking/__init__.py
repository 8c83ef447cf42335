"""Parcels of the shop."""
