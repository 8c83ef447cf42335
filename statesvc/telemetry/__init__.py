"""Telemetry of the service: metrics, spans and log lines, none of which ever holds personal
data.
"""
