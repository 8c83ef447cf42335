-- name: recorded_events
-- Return a window of one shipment's events in recorded order, with their place in the log.
SELECT e.version, e.recorded_at, e.canonical, e.sealed_part, e.batch_id, e.ordinal,
    s.sealed_at, s.first_index + e.ordinal AS log_index
FROM statesvc.event e
LEFT JOIN statesvc.sealed_batch s ON s.batch_id = e.batch_id
WHERE e.shipment_id = %(shipment_id)s AND e.recorded_at BETWEEN %(since)s AND %(until)s AND e.version > %(after)s
ORDER BY e.version
LIMIT %(limit)s;

-- name: transitions
-- Return the status changes that events of the window caused.
SELECT t.sequence, t.recorded_at, t.canonical, t.batch_id, t.ordinal, s.sealed_at, s.first_index + t.ordinal AS log_index
FROM statesvc.transition t
LEFT JOIN statesvc.sealed_batch s ON s.batch_id = t.batch_id
WHERE t.shipment_id = %(shipment_id)s AND t.recorded_at BETWEEN %(since)s AND %(until)s AND t.sequence > %(after)s AND t.sequence <= %(upto)s
ORDER BY t.sequence;

-- name: conflicts
-- Return the contradictions of this shipment's events, and those that it raised against another's, recorded in the window. The personal
-- part is sealed under the key of the shipment that holds the event, and under that of the claimed one where it has a stream.
SELECT c.shipment_id, c.claimed_shipment_id, c.recorded_at, c.event_id, k.seen AS count, k.last_seen_at, c.canonical, c.sealed_part,
    h.sealed_key AS holder_key, m.shipment_id IS NOT NULL AS claimed_exists, m.sealed_key AS claimed_key, c.batch_id, c.ordinal,
    s.sealed_at, s.first_index + c.ordinal AS log_index
FROM (
    SELECT * FROM statesvc.conflict WHERE shipment_id = %(shipment_id)s
        AND recorded_at BETWEEN %(conflict_since)s AND %(conflict_until)s
    UNION ALL
    SELECT * FROM statesvc.conflict WHERE claimed_shipment_id = %(shipment_id)s AND shipment_id <> %(shipment_id)s
        AND recorded_at BETWEEN %(conflict_since)s AND %(conflict_until)s
) c
JOIN statesvc.stream h ON h.shipment_id = c.shipment_id
LEFT JOIN statesvc.stream m ON m.shipment_id = c.claimed_shipment_id
LEFT JOIN statesvc.sealed_batch s ON s.batch_id = c.batch_id
LEFT JOIN statesvc.conflict_key k ON k.carrier_id = c.carrier_id AND k.event_id = c.event_id AND k.facts_digest = c.facts_digest
WHERE c.recorded_at > %(recorded_after)s AND c.recorded_at <= %(recorded_upto)s
ORDER BY c.recorded_at, c.batch_id, c.ordinal;

-- name: fanouts
-- Return whom the changes and observations of the window were sent to, in order.
SELECT f.recorded_at, f.canonical, f.batch_id, f.ordinal, s.sealed_at,
    s.first_index + f.ordinal AS log_index
FROM statesvc.fanout f
LEFT JOIN statesvc.sealed_batch s ON s.batch_id = f.batch_id
WHERE f.shipment_id = %(shipment_id)s AND f.recorded_at >= %(since)s AND f.recorded_at < %(month_end)s
    AND (f.sequence > %(after)s AND f.sequence <= %(upto)s OR f.sequence = ANY (%(observed)s::int[]))
ORDER BY f.batch_id, f.ordinal;

-- name: ends
-- Return how notifications of the window ended, and later ones, which may stand for them; in order.
SELECT a.recorded_at, a.canonical, a.batch_id, a.ordinal, s.sealed_at,
    s.first_index + a.ordinal AS log_index
FROM statesvc.attempt a
LEFT JOIN statesvc.sealed_batch s ON s.batch_id = a.batch_id
WHERE a.shipment_id = %(shipment_id)s AND a.recorded_at >= %(since)s AND a.recorded_at < %(month_end)s
    AND (a.sequence > %(after)s OR a.sequence = ANY (%(observed)s::int[]))
ORDER BY a.batch_id, a.ordinal;

-- name: waiting
-- Return which of these notifications wait in the outbox, and until when.
SELECT o.sequence, o.subscription_id::text, o.available_at
FROM unnest(%(subscription_ids)s::uuid[], %(sequences)s::int[]) AS u(subscription_id, sequence)
JOIN statesvc.outbox o ON o.subscription_id = u.subscription_id AND o.shipment_id = %(shipment_id)s AND o.sequence = u.sequence;

-- name: readings
-- Return who read the personal fields of the shipment, or the bodies of the window's messages, the first of which was received at
-- `first_received_at`; the newest first.
SELECT o.actor, o.target, o.recorded_at, d.details ->> 'call' AS call, d.details ->> 'hour' AS hour, (d.details ->> 'further')::bigint AS further,
    o.batch_id, o.ordinal, encode(sha256('\x00'::bytea || o.canonical), 'hex') AS leaf_hash, s.sealed_at, s.first_index + o.ordinal AS log_index
FROM statesvc.action o
CROSS JOIN LATERAL (SELECT convert_from(o.canonical, 'UTF8')::jsonb -> 'details' AS details) d
LEFT JOIN statesvc.sealed_batch s ON s.batch_id = o.batch_id
WHERE o.target = ANY (%(targets)s::text[]) AND o.verb IN ('read_personal', 'read_personal_again')
    AND o.recorded_at >= %(first_received_at)s AND o.recorded_at < %(month_end)s
    AND o.recorded_at > %(recorded_after)s AND o.recorded_at <= %(recorded_upto)s
ORDER BY o.recorded_at DESC, o.batch_id DESC, o.ordinal DESC LIMIT %(limit)s;

-- name: observations_of_shipment
-- Return what was observed of one shipment, recorded after one instant and up to another, with its place in the log; in order.
SELECT v.recorded_at, v.canonical, v.batch_id, v.ordinal, s.sealed_at,
    s.first_index + v.ordinal AS log_index
FROM statesvc.observation v
LEFT JOIN statesvc.sealed_batch s ON s.batch_id = v.batch_id
WHERE v.shipment_id = %(shipment_id)s AND v.recorded_at >= %(since)s AND v.recorded_at < %(month_end)s
    AND v.recorded_at > %(recorded_after)s AND v.recorded_at <= %(recorded_upto)s
ORDER BY v.batch_id, v.ordinal;

-- name: receivers
-- Return where these subscriptions' notifications go, those of deleted subscriptions too.
SELECT s.subscription_id::text, s.url, s.name FROM statesvc.subscription s WHERE s.subscription_id = ANY (%(subscription_ids)s::uuid[]);
