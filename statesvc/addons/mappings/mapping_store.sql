-- name: current_mappings
-- Return the latest row of each code, with who added it and why.
SELECT DISTINCT ON (m.carrier_id, m.raw_type, m.raw_code, m.raw_reason, m.raw_text)
    m.revision, m.carrier_id, m.raw_type, m.raw_code, m.raw_reason, m.raw_text, m.kind, m.status, m.reason, m.added_at, m.added_by, m.why
FROM statesvc.code_mapping m
WHERE %(carrier_id)s::text IS NULL OR m.carrier_id = %(carrier_id)s
ORDER BY m.carrier_id, m.raw_type, m.raw_code, m.raw_reason, m.raw_text, m.revision DESC;

-- name: mapping_history
-- Return all rows of a code, the latest first.
SELECT m.revision, m.carrier_id, m.raw_type, m.raw_code, m.raw_reason, m.raw_text, m.kind, m.status, m.reason, m.added_at, m.added_by, m.why
FROM statesvc.code_mapping m
WHERE m.carrier_id = %(carrier_id)s AND m.raw_type IS NOT DISTINCT FROM %(raw_type)s::text
    AND m.raw_code IS NOT DISTINCT FROM %(raw_code)s::text AND m.raw_reason IS NOT DISTINCT FROM %(raw_reason)s::text
    AND m.raw_text IS NOT DISTINCT FROM %(raw_text)s::text
ORDER BY m.revision DESC;

-- name: mapping
-- Return one row.
SELECT m.revision, m.carrier_id, m.raw_type, m.raw_code, m.raw_reason, m.raw_text, m.kind, m.status, m.reason, m.added_at, m.added_by, m.why
FROM statesvc.code_mapping m WHERE m.revision = %(revision)s;

-- name: lock_mappings
-- Lock the mappings, so that writers work one at a time and that revisions become visible in their order: a reader that has seen one never
-- misses an earlier one.
SELECT pg_advisory_xact_lock(hashtextextended('statesvc.code_mapping', 0));

-- name: add_mapping
-- Append a row; the latest row of a code holds.
INSERT INTO statesvc.code_mapping
    (revision, carrier_id, raw_type, raw_code, raw_reason, raw_text, kind, status, reason, added_at, added_by, why)
SELECT coalesce(max(m.revision), 0) + 1, %(carrier_id)s, %(raw_type)s, %(raw_code)s, %(raw_reason)s, %(raw_text)s, %(kind)s, %(status)s,
    %(reason)s, statesvc.clock(), %(added_by)s, %(why)s
FROM statesvc.code_mapping m
RETURNING revision;

-- name: store_text
-- Store a text of a mapped code, once.
INSERT INTO statesvc.mapped_text (carrier_id, stand_in, sealed) VALUES (%(carrier_id)s, %(stand_in)s, %(sealed)s) ON CONFLICT (carrier_id, stand_in) DO NOTHING;

-- name: forget_texts
-- Delete those of these texts that no mapping in effect names.
WITH in_effect AS (
    SELECT DISTINCT ON (m.raw_type, m.raw_code, m.raw_reason, m.raw_text) m.*
    FROM statesvc.code_mapping m WHERE m.carrier_id = %(carrier_id)s
    ORDER BY m.raw_type, m.raw_code, m.raw_reason, m.raw_text, m.revision DESC
)
DELETE FROM statesvc.mapped_text t
WHERE t.carrier_id = %(carrier_id)s AND t.stand_in = ANY (%(stand_ins)s::text[]) AND NOT EXISTS (
    SELECT FROM in_effect m WHERE m.kind IS NOT NULL AND t.stand_in IN (m.raw_type, m.raw_code, m.raw_reason, m.raw_text));

-- name: mapped_texts
-- Return the texts of a carrier's mapped codes.
SELECT t.stand_in, t.sealed FROM statesvc.mapped_text t WHERE t.carrier_id = %(carrier_id)s ORDER BY t.stand_in;

-- name: by_category
-- Return the codes that were read only by their category and that no row maps: how often, of how many shipments, and the latest messages.
-- From the newest `count_max` such events that the index of codes gives.
WITH candidate AS MATERIALIZED (
    SELECT e.carrier_id, e.shipment_id, e.message_id, e.received_at, e.raw_type, e.raw_code FROM statesvc.event e
    WHERE (e.kind = 'unmapped' OR e.by_category) AND e.by_category AND e.kind <> 'correction' LIMIT %(count_max)s
), said AS (
    SELECT c.carrier_id, c.raw_type, c.raw_code, c.shipment_id, c.message_id, c.received_at FROM candidate c
), in_effect AS (
    SELECT DISTINCT ON (m.carrier_id, m.raw_type, m.raw_code) m.* FROM statesvc.code_mapping m
    WHERE m.raw_reason IS NULL AND m.raw_text IS NULL
    ORDER BY m.carrier_id, m.raw_type, m.raw_code, m.revision DESC
)
SELECT s.carrier_id, s.raw_type, s.raw_code, count(*) AS events, count(DISTINCT s.shipment_id) AS shipments, min(s.received_at) AS since,
    (array_agg(s.message_id ORDER BY s.received_at DESC))[1:%(examples_max)s] AS message_ids
FROM said s
WHERE NOT EXISTS (SELECT FROM in_effect m WHERE m.kind IS NOT NULL AND m.carrier_id = s.carrier_id
    AND m.raw_type IS NOT DISTINCT FROM s.raw_type AND m.raw_code IS NOT DISTINCT FROM s.raw_code)
GROUP BY s.carrier_id, s.raw_type, s.raw_code
ORDER BY count(*) DESC, s.carrier_id, s.raw_type, s.raw_code;
