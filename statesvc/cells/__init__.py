"""Cells: complete installations side by side, each with its own database and log, and the directory that says whose carrier is where."""
