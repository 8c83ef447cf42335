#!/usr/bin/env bash
# PyPI rfc3161-client 1.0.9: a time stamp whose certificates do not stand in DER order is not read.
#
# A CMS SignedData holds its certificates as SET OF; DER sorts such a set by its bytes. OpenSSL's
# `ts -reply` and public authorities write the signer's certificate first, whatever its bytes are,
# and `openssl ts -verify` accepts both. The set is not covered by the signature, so a caller may
# sort it before decoding.
#
# Seen: of two replies that differ in that order alone, OpenSSL accepts both, rfc3161-client one.
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT; cd "$folder"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check rfc3161-client==1.0.9 2>/dev/null
cat > openssl.cnf <<'CNF'
[req]
distinguished_name = name
[name]
[ca]
basicConstraints = critical,CA:true
[tsa]
extendedKeyUsage = critical,timeStamping
[tsa_config]
serial = serial
default_policy = 1.2.3.4
digests = sha256
signer_digest = sha256
ess_cert_id_alg = sha256
CNF
printf data > data; openssl ts -query -data data -sha256 -cert -out query.tsq 2>/dev/null
result=()
# the length of the authority's name decides which of the two certificates is smaller in DER
for name in CA "$(printf 'C%.0s' {1..60})"; do
    openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -subj "/CN=$name/O=$name/OU=$name" -days 30 -config openssl.cnf -extensions ca 2>/dev/null
    openssl req -newkey rsa:2048 -nodes -keyout tsa.key -out tsa.csr -subj /CN=T -config openssl.cnf 2>/dev/null
    openssl x509 -req -in tsa.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 30 -extfile openssl.cnf -extensions tsa -out tsa.pem 2>/dev/null
    openssl ts -reply -config openssl.cnf -section tsa_config -queryfile query.tsq -signer tsa.pem -inkey tsa.key -chain ca.pem -out reply.tsr 2>/dev/null
    openssl ts -verify -data data -in reply.tsr -CAfile ca.pem >/dev/null 2>&1 && openssl=accepts || openssl=refuses
    client=$(env/bin/python -c '
from rfc3161_client import decode_timestamp_response
try:
    decode_timestamp_response(open("reply.tsr", "rb").read()); print("reads")
except ValueError: print("refuses")')
    result+=("openssl $openssl, rfc3161-client $client")
done
printf '%s\n' "${result[@]}"
[[ ${result[0]} != "${result[1]}" && ${result[*]} != *'openssl refuses'* && ${result[*]} == *'client reads'* ]] || { echo 'behaviour changed' >&2; exit 1; }
