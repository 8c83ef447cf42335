-- name: mappings_since
-- Return the mappings that came after a revision, in their order; nearly always none.
SELECT revision, carrier_id, raw_type, raw_code, raw_reason, raw_text, kind, status, reason
FROM statesvc.code_mapping WHERE revision > %(revision)s ORDER BY revision;
