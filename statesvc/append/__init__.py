"""Appending to the log: THE transaction, in which a message takes effect with
everything that follows from it.
"""
