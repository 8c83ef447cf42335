#!/usr/bin/env bash
# npm fflate 0.8.3: gunzipSync returns the first member of a multi-member gzip file, without an error.
#
# RFC 1952 section 2.2: a gzip file consists of one or more members, whose contents are
# concatenated. gzip(1), Node's zlib and Python's gzip read all of them. fflate's one-shot call
# stops after the first (its streaming class reads on), and so does Python's
# zlib.decompress(data, 31): a file that was written in batches is shortened silently.
#
# Seen: fflate "one\n", zlib "one\n", gzip and Node "one\ntwo\n".
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT; cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund fflate@0.8.3 >/dev/null
{ echo one | gzip -n; echo two | gzip -n; } > members.gz
cat > run.mjs <<'JS'
import { readFileSync } from "node:fs";
import { gunzipSync as whole } from "node:zlib";
import { gunzipSync } from "fflate";
const bytes = readFileSync("members.gz");
console.log(JSON.stringify([Buffer.from(gunzipSync(bytes)).toString(), whole(bytes).toString()]));
JS
node=$(node run.mjs)
python=$(python3 -c 'import gzip, zlib; b = open("members.gz", "rb").read(); print([zlib.decompress(b, 31), gzip.decompress(b)])')
echo "fflate 0.8.3 and Node: $node"
echo "zlib and gzip of Python: $python"
[[ $node == '["one\n","one\ntwo\n"]' && $python == "[b'one\\n', b'one\\ntwo\\n']" ]] || { echo 'behaviour changed' >&2; exit 1; }
