"""Imported last by the process that roles are forked from.

What is loaded by then stays, so no collection need visit it. And from then on the terminal is not its own: were it to end with the
terminal (SIGHUP), the supervisor could not see how the roles end.
"""

import gc
import os

gc.collect()
gc.freeze()
os.setsid()
