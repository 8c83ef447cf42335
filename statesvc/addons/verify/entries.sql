-- name: snapshot
-- Have all reads of one range see the same snapshot.
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY;

-- name: session
-- Set up the session: times come as UTC, nothing is too slow, it shows who is at work, and no statement takes more than one processor of
-- the server.
SELECT set_config('TimeZone', 'UTC', false), set_config('statement_timeout', '0', false), set_config('jit', 'off', false),
    set_config('max_parallel_workers_per_gather', '0', false);

-- name: batches
-- Return the batches of a range of ids, and whether they are sealed or wait to be.
SELECT b.batch_id, b.recorded_from, b.recorded_to, b.entries, b.leaf_hashes, s.first_index, u.batch_id IS NOT NULL
FROM statesvc.batch b
LEFT JOIN statesvc.sealed_batch s ON s.batch_id = b.batch_id
LEFT JOIN statesvc.unsealed u ON u.batch_id = b.batch_id
WHERE b.batch_id >= %(low)s AND b.batch_id < %(high)s;

-- name: event
-- Return the events of a range of batches. Their sealed parts only where someone opens them.
SELECT e.batch_id, e.ordinal, e.canonical, CASE WHEN %(opens)s THEN e.sealed_part END, e.shipment_id::text, e.version, e.recorded_at, e.received_at,
    e.occurred_at, e.message_id::text, e.carrier_id, e.event_id, e.kind, e.status, e.carrier_code, e.by_category, e.normalizer,
    e.raw_type, e.raw_code, e.raw_reason, e.raw_text, e.corrects, e.printed_number, e.occurred_offset_seconds
FROM statesvc.event e WHERE e.batch_id >= %(low)s AND e.batch_id < %(high)s;

-- name: conflict
-- Return the conflicts of a range of batches.
SELECT c.batch_id, c.ordinal, c.canonical, CASE WHEN %(opens)s THEN c.sealed_part END, c.shipment_id::text, c.claimed_shipment_id::text, c.recorded_at,
    c.message_id::text, c.carrier_id, c.event_id, encode(c.facts_digest, 'hex')
FROM statesvc.conflict c WHERE c.batch_id >= %(low)s AND c.batch_id < %(high)s;

-- name: transition
-- Return the transitions of a range of batches.
SELECT t.batch_id, t.ordinal, t.canonical, NULL, t.shipment_id::text, t.sequence, t.recorded_at, t.from_status, t.to_status
FROM statesvc.transition t WHERE t.batch_id >= %(low)s AND t.batch_id < %(high)s;

-- name: fanout
-- Return the fan-outs of a range of batches.
SELECT f.batch_id, f.ordinal, f.canonical, NULL, f.shipment_id::text, f.sequence, f.recorded_at,
    array_to_string(f.subscriptions, ' '), f.replayed
FROM statesvc.fanout f WHERE f.batch_id >= %(low)s AND f.batch_id < %(high)s;

-- name: attempt
-- Return the ends of notifications of a range of batches.
SELECT a.batch_id, a.ordinal, a.canonical, CASE WHEN %(opens)s THEN a.sealed_part END, a.shipment_id::text, a.sequence, a.subscription_id::text,
    a.recorded_at, a.outcome, a.number, a.started_at, a.duration_ms, a.status_code, a.tries
FROM statesvc.attempt a WHERE a.batch_id >= %(low)s AND a.batch_id < %(high)s;

-- name: observation
-- Return the observations of a range of batches.
SELECT v.batch_id, v.ordinal, v.canonical, NULL, v.shipment_id::text, v.version, v.kind, v.recorded_at, v.since
FROM statesvc.observation v WHERE v.batch_id >= %(low)s AND v.batch_id < %(high)s;

-- name: action
-- Return the actions of a range of batches.
SELECT o.batch_id, o.ordinal, o.canonical, NULL, o.actor, o.verb, o.target, o.recorded_at
FROM statesvc.action o WHERE o.batch_id >= %(low)s AND o.batch_id < %(high)s;

-- name: shipment_keys
-- Return the keys of shipments that have a stream; NULL: erased.
SELECT shipment_id::text, shipment_id, sealed_key FROM statesvc.stream WHERE shipment_id = ANY (%(shipment_ids)s::uuid[]);
