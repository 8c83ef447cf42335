"""Imported last by the process that tests fork roles from: loads them, and leaves the terminal,
whose end must not end it.
"""

import os

from statesvc.roles.supervisor.preload import preload

preload()
os.setsid()
