"""Operators say what a code means: what that would change, and reading the history of the code again."""
