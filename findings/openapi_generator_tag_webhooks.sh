#!/usr/bin/env bash
# PyPI openapi-generator-cli 7.26.0: a tag called `webhooks` loses operations of `paths`.
#
# OpenAPI 3.1 has an object `webhooks` beside `paths`, and tags are free names. Where the document
# uses the tag `webhooks` for an operation of `paths` and for one of `webhooks`, the Go generator
# writes one class for the tag that holds the webhook's operation alone; the path's operation has
# no method and no warning is printed. Any other name for the tag keeps both.
#
# Seen: tag `webhooks`: SendPush is absent from the client; tag `pushes`: it is there.
set -euo pipefail
command -v java >/dev/null || { echo 'needs java' >&2; exit 2; }
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT; cd "$folder"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check openapi-generator-cli==7.26.0 2>/dev/null
for tag in webhooks pushes; do
    cat > "$tag.json" <<JSON
{"openapi": "3.1.0", "info": {"title": "t", "version": "1"},
 "paths": {"/pushes": {"post": {"operationId": "send_push", "tags": ["$tag"], "responses": {"200": {"description": "ok"}}}}},
 "webhooks": {"changed": {"post": {"operationId": "receive_changed", "tags": ["webhooks"], "responses": {"200": {"description": "ok"}}}}}}
JSON
    env/bin/openapi-generator-cli generate -g go -i "$tag.json" -o "$tag" >"$tag.log" 2>&1
    found=$(grep -l 'func (a .*) SendPush(' "$tag"/*.go | wc -l || true)
    echo "openapi-generator 7.26.0, tag $tag: SendPush in $found files"
    [[ $found == $([[ $tag == pushes ]] && echo 1 || echo 0) ]] || { echo 'behaviour changed' >&2; exit 1; }
done
