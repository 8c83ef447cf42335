-- name: mappings_since
-- The mappings that came after a revision, in their order; nearly always none.
SELECT revision, carrier_id, raw_type, raw_code, kind, status, reason
FROM statesvc.code_mapping WHERE revision > %(revision)s ORDER BY revision;

-- name: standing_mappings
-- The latest row of each code, with who added it and why.
SELECT DISTINCT ON (m.carrier_id, m.raw_type, m.raw_code)
    m.revision, m.carrier_id, m.raw_type, m.raw_code, m.kind, m.status, m.reason, m.added_at, m.added_by, m.why
FROM statesvc.code_mapping m
ORDER BY m.carrier_id, m.raw_type, m.raw_code, m.revision DESC;

-- name: lock_mappings
-- One writer at a time, so that revisions become visible in their order: a reader that has seen one never misses an earlier one.
SELECT pg_advisory_xact_lock(hashtextextended('statesvc.code_mapping', 0));

-- name: add_mapping
-- Appends a row; the latest row of a code holds.
INSERT INTO statesvc.code_mapping (revision, carrier_id, raw_type, raw_code, kind, status, reason, added_at, added_by, why)
SELECT coalesce(max(m.revision), 0) + 1, %(carrier_id)s, %(raw_type)s, %(raw_code)s, %(kind)s, %(status)s, %(reason)s, statesvc.clock(),
    %(added_by)s, %(why)s
FROM statesvc.code_mapping m
RETURNING revision;
