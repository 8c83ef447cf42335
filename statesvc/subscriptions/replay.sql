-- name: window_end
-- Return where one window ends: at the transition after `window` of them; none when the range ends before.
SELECT t.recorded_at, t.shipment_id, t.sequence FROM statesvc.transition t
WHERE t.recorded_at >= %(since)s AND t.recorded_at < %(until)s
    AND (t.recorded_at, t.shipment_id, t.sequence) > (%(at)s::timestamptz, %(shipment_id)s::uuid, %(sequence)s::int)
ORDER BY t.recorded_at, t.shipment_id, t.sequence OFFSET %(window)s::int - 1 LIMIT 1;

-- name: page
-- Return the next of a range, up to the end of the window: what was written for the subscription, and changes of status that match it but
-- were not, because it was disabled. Each comes with what became of it.
WITH known AS (
    SELECT n.created_at AS at, n.shipment_id, n.sequence, true AS written
    FROM statesvc.notification n
    WHERE n.subscription_id = %(subscription_id)s AND n.created_at >= %(since)s AND n.created_at < %(until)s
        AND (n.created_at, n.shipment_id, n.sequence) > (%(at)s::timestamptz, %(shipment_id)s::uuid, %(sequence)s::int)
        AND (%(end_at)s::timestamptz IS NULL OR (n.created_at, n.shipment_id, n.sequence)
            <= (%(end_at)s::timestamptz, %(end_shipment_id)s::uuid, %(end_sequence)s::int))
    ORDER BY n.created_at, n.shipment_id, n.sequence LIMIT %(limit)s
), missed AS (
    SELECT t.recorded_at AS at, t.shipment_id, t.sequence, false AS written
    FROM statesvc.subscription s
    CROSS JOIN statesvc.transition t
    JOIN statesvc.stream k ON k.shipment_id = t.shipment_id
    WHERE s.subscription_id = %(subscription_id)s AND t.recorded_at >= %(since)s AND t.recorded_at < %(until)s
        AND (t.recorded_at, t.shipment_id, t.sequence) > (%(at)s::timestamptz, %(shipment_id)s::uuid, %(sequence)s::int)
        AND (%(end_at)s::timestamptz IS NULL OR (t.recorded_at, t.shipment_id, t.sequence)
            <= (%(end_at)s::timestamptz, %(end_shipment_id)s::uuid, %(end_sequence)s::int))
        AND (s.types IS NULL OR 'shipment.status_changed' = ANY (s.types))
        AND (s.statuses IS NULL OR t.to_status = ANY (s.statuses))
        AND (s.carriers IS NULL OR k.carrier_id = ANY (s.carriers))
        AND (s.shipments IS NULL OR k.carrier_id || '/' || k.number = ANY (s.shipments))
        AND NOT EXISTS (SELECT FROM statesvc.notification n
            WHERE n.shipment_id = t.shipment_id AND n.sequence = t.sequence AND n.subscription_id = s.subscription_id)
    ORDER BY t.recorded_at, t.shipment_id, t.sequence LIMIT %(limit)s
), next AS (
    SELECT * FROM known UNION ALL SELECT * FROM missed ORDER BY at, shipment_id, sequence LIMIT %(limit)s
)
SELECT x.at, x.shipment_id, x.sequence, x.written, EXISTS (
        SELECT FROM statesvc.outbox o
        WHERE o.subscription_id = %(subscription_id)s AND o.shipment_id = x.shipment_id AND o.sequence = x.sequence) AS waiting,
    x.written AND EXISTS (
        SELECT FROM statesvc.attempt a
        WHERE a.shipment_id = x.shipment_id AND a.sequence = x.sequence AND a.subscription_id = %(subscription_id)s
            AND a.outcome = 'delivered') AS delivered
FROM next x ORDER BY x.at, x.shipment_id, x.sequence;

-- name: events
-- Return the events that these changes name.
SELECT e.shipment_id, e.version, e.canonical
FROM unnest(%(shipment_ids)s::uuid[], %(sequences)s::int[], %(ats)s::timestamptz[]) AS u(shipment_id, version, at)
JOIN statesvc.event e ON e.shipment_id = u.shipment_id AND e.version = u.version
    AND e.recorded_at BETWEEN u.at - interval '1 day' AND u.at + interval '1 day';

-- name: put
-- Write what was never written, from the log, under the webhook-id that it would have had, and put all into the outbox; settles their dead
-- letters. Attempts are numbered on. Return what is in the outbox now: which change, the leaf hash of its event, or the fan-out that says
-- it (both NULL: its entries are archived), and whether it was never written.
WITH asked AS MATERIALIZED (
    SELECT * FROM unnest(%(shipment_ids)b::uuid[], %(sequences)b::int[], %(ats)b::timestamptz[], %(writtens)b::boolean[])
        AS u(shipment_id, sequence, at, written)
), made AS (
    INSERT INTO statesvc.notification
        (shipment_id, sequence, subscription_id, created_at, occurred_at, webhook_id, type, carrier_id, tracking_number, from_status, to_status,
        occurred_offset_seconds, epoch)
    SELECT a.shipment_id, a.sequence, %(subscription_id)s::uuid, t.recorded_at, e.occurred_at,
        statesvc.webhook_id(%(subscription_id)s::uuid, statesvc.leaf_hash(b.leaf_hashes, e.ordinal)), 'shipment.status_changed', e.carrier_id,
        coalesce(e.printed_number, k.number), t.from_status, t.to_status, e.occurred_offset_seconds,
        (SELECT nullif(max(l.epoch), 1) FROM statesvc.log_epoch l)
    FROM asked a
    JOIN statesvc.transition t ON t.shipment_id = a.shipment_id AND t.sequence = a.sequence AND t.recorded_at = a.at
    JOIN statesvc.event e ON e.shipment_id = a.shipment_id AND e.version = a.sequence
        AND e.recorded_at BETWEEN a.at - interval '1 day' AND a.at + interval '1 day'
    JOIN statesvc.batch b ON b.batch_id = e.batch_id AND e.recorded_at BETWEEN b.recorded_from AND b.recorded_to
    JOIN statesvc.stream k ON k.shipment_id = a.shipment_id
    WHERE NOT a.written
    ORDER BY a.shipment_id, a.sequence
    ON CONFLICT (shipment_id, sequence, subscription_id) DO NOTHING
    RETURNING shipment_id, sequence, from_status, to_status
), queued AS (
    INSERT INTO statesvc.outbox (subscription_id, shipment_id, sequence, available_at, created_at, earlier_attempts)
    SELECT %(subscription_id)s::uuid, a.shipment_id, a.sequence, %(now)s::timestamptz, %(now)s::timestamptz, least(30000,
        statesvc.last_attempt(%(subscription_id)s::uuid, a.shipment_id, a.sequence))
    FROM asked a
    WHERE a.written OR EXISTS (SELECT FROM made m WHERE m.shipment_id = a.shipment_id AND m.sequence = a.sequence)
    ORDER BY a.shipment_id, a.sequence
    ON CONFLICT (subscription_id, shipment_id, sequence) DO NOTHING
    RETURNING shipment_id, sequence
), resolved AS (
    UPDATE statesvc.dead_letter d
    SET resolved_at = %(now)s::timestamptz, resolution = 'replayed', resolved_by = %(actor)s, why = %(why)s, run_id = %(run_id)s::uuid
    FROM queued q
    JOIN statesvc.notification n
        ON n.shipment_id = q.shipment_id AND n.sequence = q.sequence AND n.subscription_id = %(subscription_id)s::uuid
    WHERE d.kind = 'notification' AND d.resolved_at IS NULL AND d.webhook_id = n.webhook_id
)
SELECT q.shipment_id, q.sequence, statesvc.leaf_hash(b.leaf_hashes, e.ordinal), f.canonical, coalesce(m.from_status, n.from_status), coalesce(m.to_status, n.to_status),
    ARRAY[%(subscription_id)s::uuid], m.shipment_id IS NULL, CASE WHEN q.sequence < 0 THEN n.type END
FROM queued q
LEFT JOIN made m ON m.shipment_id = q.shipment_id AND m.sequence = q.sequence
LEFT JOIN statesvc.notification n
    ON n.shipment_id = q.shipment_id AND n.sequence = q.sequence AND n.subscription_id = %(subscription_id)s::uuid
LEFT JOIN statesvc.event e ON e.shipment_id = q.shipment_id AND e.version = q.sequence
LEFT JOIN statesvc.batch b ON b.batch_id = e.batch_id AND e.recorded_at BETWEEN b.recorded_from AND b.recorded_to
LEFT JOIN LATERAL (
    SELECT w.canonical FROM statesvc.fanout w
    WHERE w.shipment_id = q.shipment_id AND w.sequence = q.sequence LIMIT 1
) f ON true
ORDER BY q.shipment_id, q.sequence;

-- name: made_up_for
-- Note that what was missed before `until` (NULL: at all) was sent again.
UPDATE statesvc.subscription SET missed_since = %(until)s::timestamptz
WHERE subscription_id = %(subscription_id)s AND missed_since >= %(since)s::timestamptz
    AND (%(until)s::timestamptz IS NULL OR missed_since < %(until)s::timestamptz);

-- name: once
-- Return whose changes a subscription asks for, where it wants each status of a parcel once.
SELECT s.carriers, s.shipments FROM statesvc.subscription s
WHERE s.subscription_id = %(subscription_id)s AND s.parcels = 'once';

-- name: read_status
-- Return when the subscription was made, whether it is disabled, and the time.
SELECT s.created_at, s.disabled_at IS NOT NULL, statesvc.clock() FROM statesvc.subscription s
WHERE s.subscription_id = %(subscription_id)s AND s.deleted_at IS NULL;

-- name: make_due
-- Make due what waits of a shipment for a subscription, except what is under way: the one that is asked for, and what waits behind it.
UPDATE statesvc.outbox o SET available_at = statesvc.clock()
WHERE o.subscription_id = %(subscription_id)s AND o.shipment_id = %(shipment_id)s AND o.token IS NULL AND o.available_at > statesvc.clock();

-- name: under_way
-- Find a notification that a notifier is sending, or has sent and not settled.
SELECT FROM statesvc.outbox o
WHERE o.subscription_id = %(subscription_id)s AND o.shipment_id = %(shipment_id)s AND o.sequence = %(sequence)s
    AND o.token IS NOT NULL AND o.available_at > statesvc.clock();
