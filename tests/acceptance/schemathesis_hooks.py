"""Hooks that schemathesis loads beside its configuration."""

import schemathesis

schemathesis.serializer.alias("application/x-ndjson", "text/plain")
