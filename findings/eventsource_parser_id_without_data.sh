#!/usr/bin/env bash
# npm eventsource-parser 3.1.1 and 4.1.3: an `id:` in a block without data is reported to nobody.
#
# The HTML standard keeps the last event ID of a block even if no event is dispatched (a block with
# an empty data buffer sets it and returns), so a server may send the position before the first
# event. The parser's `onEvent` is only called for blocks with data, and no other callback carries
# the id: a client that is cut before the first event reconnects without Last-Event-ID.
#
# Seen: events [{"data":"x"}], no id anywhere. Put the position into an event with data instead.
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT; cd "$folder"
npm init -y >/dev/null
for version in 3.1.1 4.1.3; do
    npm install --silent --no-audit --no-fund "eventsource-parser@$version" >/dev/null
    cat > run.mjs <<'JS'
import { createParser } from "eventsource-parser";
const seen = [];
const parser = createParser({
  onEvent: (event) => seen.push(event),
  onRetry: (ms) => seen.push({ retry: ms }),
  onError: (error) => seen.push({ error: String(error) }),
});
parser.feed("retry: 1000\nid: 42\n\n");
console.log(JSON.stringify(seen));
JS
    found=$(node run.mjs)
    echo "eventsource-parser $version: $found"
    [[ $found == '[{"retry":1000}]' ]] || { echo 'behaviour changed' >&2; exit 1; }
done
