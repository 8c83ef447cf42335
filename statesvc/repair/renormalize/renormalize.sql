-- name: count_messages
-- How many messages there are to read again.
SELECT count(*) FROM statesvc.message m
WHERE m.carrier_id = %(carrier_id)s AND (%(since)s::timestamptz IS NULL OR m.received_at >= %(since)s)
    AND (%(read_by)s::text IS NULL OR m.normalizer = %(read_by)s OR starts_with(m.normalizer, %(read_by)s || '+m'));

-- name: next_messages
-- The next messages in the order of their key; their bodies are found by `statesvc.bodies`. A run passes over the messages of all carriers
-- once, by their primary key: an index by carrier would cost every settle more than it saves a run.
SELECT m.message_id, m.received_at, m.shipments, m.sealed_key
FROM statesvc.message m
WHERE m.carrier_id = %(carrier_id)s AND (%(since)s::timestamptz IS NULL OR m.received_at >= %(since)s)
    AND (%(read_by)s::text IS NULL OR m.normalizer = %(read_by)s OR starts_with(m.normalizer, %(read_by)s || '+m'))
    AND m.message_id > %(after)s
ORDER BY m.message_id LIMIT %(limit)s;

-- name: these_messages
-- These messages, without a key to read them where they are of another carrier.
SELECT m.message_id, m.received_at, m.shipments, CASE WHEN m.carrier_id = %(carrier_id)s THEN m.sealed_key END
FROM statesvc.message m
WHERE m.message_id = ANY (%(message_ids)s::uuid[])
ORDER BY m.message_id;

-- name: lock_shipments
-- Locks the heads of those shipments that exist, in their order; as the append does it, so that neither waits for the other in a ring.
SELECT shipment_id FROM statesvc.stream WHERE shipment_id = ANY (%(shipment_ids)b::uuid[]) ORDER BY shipment_id FOR NO KEY UPDATE;

-- name: histories
-- All events of these shipments, oldest first.
SELECT e.shipment_id, e.canonical FROM statesvc.event e
WHERE e.shipment_id = ANY (%(shipment_ids)b::uuid[]) ORDER BY e.shipment_id, e.version;

-- name: resolve_codes
-- Resolves codes whose events were all read again.
UPDATE statesvc.dead_letter d
SET resolved_at = statesvc.clock(), resolution = 'replayed', resolved_by = %(actor)s, why = %(why)s
FROM unnest(%(raw_types)s::text[], %(raw_codes)s::text[]) AS u(raw_type, raw_code)
WHERE d.kind = 'code' AND d.resolved_at IS NULL AND d.carrier_id = %(carrier_id)s
    AND d.raw_type IS NOT DISTINCT FROM u.raw_type AND d.raw_code IS NOT DISTINCT FROM u.raw_code;

-- name: name_shipments
-- Wraps the body of a message under the keys of all shipments that it names now.
SELECT statesvc.name_shipments(%(message_id)s, %(received_at)s, %(shipments)b::uuid[], %(sealed_key)b);
