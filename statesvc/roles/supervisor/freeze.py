"""Imported last by the process that roles are forked from: what is loaded by then stays, so no collection need visit it."""

import gc

gc.collect()
gc.freeze()
