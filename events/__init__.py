"""The domain: the vocabulary, the normalizers, and the append-only event log."""

import zoneinfo

# a local time is read by the rules of the `tzdata` package alone: with the machine's, which
# `zoneinfo` prefers, two workers would read two instants from one scan
zoneinfo.reset_tzpath(to=[])
zoneinfo.ZoneInfo.clear_cache()
