"""The canonical event as JSON Schema: declared once, committed by version, and only ever
growing.
"""
