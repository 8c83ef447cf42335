"""Findings of doctor about the spool of STATESVC_SPOOL_URL, as this machine sees it."""

import asyncio
import os
import shutil
import tempfile
import time
from importlib import import_module
from pathlib import Path
from typing import Final

from statesvc.background.duration import duration
from statesvc.health.finding import Finding, fail, ok, warn
from statesvc.settings.service_settings import SpoolSettings
from statesvc.spool.spooling import folder_of

# Of a sync alone; an ACK from the spool should take less than 100 ms.
SYNC_SECONDS_MAX: Final = 0.05
REPLICAS_MIN: Final = 3
_ABOUT: Final = "spool"


async def check_spool(settings: SpoolSettings) -> list[Finding]:
    """Check that the spool takes messages durably; nothing where none is set."""
    if settings.url is None:
        return []
    folder = folder_of(settings.url)
    if folder is not None:
        return [await asyncio.to_thread(_check_folder, folder, settings.bytes_max)]
    return await _check_stream(settings)


def _check_folder(folder: Path, bytes_max: int) -> Finding:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder) as file:
            file.write(bytes(4096))
            file.flush()
            began = time.monotonic()
            os.fdatasync(file.fileno())
            seconds = time.monotonic() - began
        free = shutil.disk_usage(folder).free
    except OSError as error:
        return fail(_ABOUT, f"{folder} takes no message: {error.strerror}")
    if free < bytes_max:
        return warn(
            _ABOUT,
            f"{folder} has {free / 2**30:.1f} GiB free, less than STATESVC_SPOOL_BYTES_MAX"
            f" ({bytes_max / 2**30:.1f} GiB): when they are used pushes get 503",
        )
    if seconds > SYNC_SECONDS_MAX:
        return warn(_ABOUT, f"a sync in {folder} took {seconds * 1000:.0f} ms, an ACK waits for it")
    return ok(
        _ABOUT,
        f"{folder} is written and synced in {seconds * 1000:.0f} ms; it is lost with its disk",
    )


async def _check_stream(settings: SpoolSettings) -> list[Finding]:
    try:
        nats_spool = import_module("statesvc.spool.nats_spool")
        info = await nats_spool.look(settings.url)
    except (ImportError, OSError, ValueError) as error:
        return [fail(_ABOUT, str(error))]
    if info is None:
        return [ok(_ABOUT, "its servers answer; ingress makes the stream at its start")]
    config, replicas = info.config, info.config.num_replicas or 1
    found = []
    if (flaw := nats_spool.flaw(config)) is not None:
        found.append(fail(_ABOUT, f"{flaw}: ingress refuses it"))
    if replicas < REPLICAS_MIN:
        text = f"{replicas} replicas, {REPLICAS_MIN} bear the loss of a server"
        found.append(warn(_ABOUT, f"stream {config.name} has {text}"))
    peers = (info.cluster and info.cluster.replicas) or ()
    if behind := [peer.name for peer in peers if peer.offline or not peer.current]:
        found.append(warn(_ABOUT, f"replicas are away or behind: {', '.join(behind)}"))
    if config.duplicate_window < settings.age_seconds_max:
        known, waits = duration(config.duplicate_window), duration(settings.age_seconds_max)
        text = f"for {known}, but they may wait for {waits}: a later retry gets an id of its own"
        found.append(warn(_ABOUT, f"stream {config.name} recognises repeated messages {text}"))
    # a client cannot read this setting
    synced = "each write is synced only if its servers have `sync_interval: always`"
    found.append(ok(_ABOUT, f"stream {config.name} has {replicas} replicas; {synced}"))
    return found
