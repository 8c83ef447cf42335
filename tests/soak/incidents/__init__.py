"""Incidents, scripted: the real service, a real Prometheus with the real rules, and someone on call
who has nothing but the runbook.
"""
