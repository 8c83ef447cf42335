#!/usr/bin/env bash
# nats-py 2.16.0: `allow_reconnect=False` does not hold for the first connection to a port that refuses.
#
# `connect(allow_reconnect=False)` reads as "one try, then an error", and the option is said to turn
# reconnecting off. But the choice of the next server catches every error itself, and goes on until each
# server was tried `max_reconnect_attempts` times beyond the first, `reconnect_time_wait` apart: with the
# defaults (60, 2 s) a check of a server that is not there answers after two minutes. Only an error after
# the TCP connection ends at once. A caller that wants one answer puts a timeout around the call.
#
# Seen: with max_reconnect_attempts=3 the port is tried 4 times with the option as without it, and the error
# is NoServersError in place of the refusal.
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT; cd "$folder"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check nats-py==2.16.0 2>/dev/null
found=$(env/bin/python - <<'PY'
import asyncio
import socket

import nats

with socket.socket() as taken:  # bound and not listening: connections are refused
    taken.bind(("127.0.0.1", 0))
    url = f"nats://127.0.0.1:{taken.getsockname()[1]}"

    async def tries(**options: bool) -> str:
        refused = []

        async def note(error: Exception) -> None:
            refused.append(error)

        try:
            await nats.connect(
                url, error_cb=note, max_reconnect_attempts=3, reconnect_time_wait=0.05, **options
            )
        except Exception as error:
            return f"{len(refused)} tries, {type(error).__name__}"
        return "connected"

    print(asyncio.run(tries(allow_reconnect=False)), "|", asyncio.run(tries()))
PY
)
echo "$found"
[[ $found == "4 tries, NoServersError | 4 tries, NoServersError" ]]
