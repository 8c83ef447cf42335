"""The composition root: each role is built here from settings, and nowhere else, and runs
until it is asked to stop.
"""
