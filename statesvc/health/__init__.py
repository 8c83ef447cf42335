"""Health: the heartbeats of processes, notices for operators, gauges of the database, and the
reconciler that counts the promises.
"""
