"""HTTP of all parts of the service: routes with their contract, problems, keys, pages, health.

Knows no domain.
"""
