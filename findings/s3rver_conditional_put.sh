#!/usr/bin/env bash
# npm s3rver 3.7.1: `If-None-Match: *` on PUT does not keep an object from being overwritten.
#
# Amazon S3 answers 412 to such a request since 2024-08 where the object exists, and clients rely
# on it to create an object once. This emulator accepts the header and replaces the object, so a
# test against it proves nothing about writes that must not overwrite. moto and Azurite refuse.
#
# Seen: both requests are answered with 200, and the second content is stored.
set -euo pipefail
folder=$(mktemp -d); trap 'kill "${server:-}" 2>/dev/null || true; rm -rf "$folder"' EXIT; cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund s3rver@3.7.1 >/dev/null 2>&1
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
npx s3rver --silent --address 127.0.0.1 --port "$port" --directory "$folder/data" --allow-mismatched-signatures --configure-bucket heads >/dev/null 2>&1 &
server=$!
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check boto3==1.40.0 2>/dev/null
found=$(env/bin/python - "$port" <<'PY'
import sys, time, boto3
from botocore.config import Config
s3 = boto3.client("s3", endpoint_url=f"http://127.0.0.1:{sys.argv[1]}", region_name="us-east-1", aws_access_key_id="S3RVER", aws_secret_access_key="S3RVER", config=Config(s3={"addressing_style": "path"}, request_checksum_calculation="when_required"))
for _ in range(50):
    try:
        s3.list_buckets(); break
    except Exception: time.sleep(0.2)
codes = []
for body in (b"first", b"second"):
    try:
        codes.append(s3.put_object(Bucket="heads", Key="1", Body=body, IfNoneMatch="*")["ResponseMetadata"]["HTTPStatusCode"])
    except Exception as error: codes.append(error.response["ResponseMetadata"]["HTTPStatusCode"])
print(codes, s3.get_object(Bucket="heads", Key="1")["Body"].read().decode())
PY
)
echo "s3rver 3.7.1: $found"
[[ $found == '[200, 200] second' ]] || { echo 'behaviour changed' >&2; exit 1; }
