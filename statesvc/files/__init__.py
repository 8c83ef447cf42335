"""The files of archives: in a folder or an object store, complete or absent, and
named by their digest.
"""
