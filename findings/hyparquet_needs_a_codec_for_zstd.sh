#!/usr/bin/env bash
# npm hyparquet 1.33.0: reads Snappy alone; a Parquet file compressed with zstd needs a second package.
#
# Parquet's format lists eight codecs that a reader may meet, and pyarrow, DuckDB and Spark read
# zstd without more. hyparquet raises for any codec but Snappy unless `compressors` of the package
# hyparquet-compressors are passed in: "any Parquet reader" is not true of a zstd file.
#
# Seen: an error that names the codec without `compressors`, the rows with them.
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT; cd "$folder"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check pyarrow==26.0.1 2>/dev/null
env/bin/python -c 'import pyarrow as p, pyarrow.parquet as q; q.write_table(p.table({"a": [1, 2, 3]}), "rows.parquet", compression="zstd")'
npm init -y >/dev/null
npm install --silent --no-audit --no-fund hyparquet@1.33.0 hyparquet-compressors@1.1.2 >/dev/null 2>&1
cat > run.mjs <<'JS'
import { readFileSync } from "node:fs";
import { parquetReadObjects } from "hyparquet";
import { compressors } from "hyparquet-compressors";
const bytes = readFileSync("rows.parquet");
const file = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
const bare = await parquetReadObjects({ file }).then(() => "reads", (error) => "raises: " + error.message);
const rows = await parquetReadObjects({ file, compressors });
console.log(bare + "; with compressors " + rows.length + " rows");
JS
found=$(node run.mjs)
echo "hyparquet 1.33.0: $found"
[[ $found == 'raises: parquet unsupported compression codec: ZSTD; with compressors 3 rows' ]] || { echo 'behaviour changed' >&2; exit 1; }
