-- name: overfull
-- Return the subscriptions for which too much waits: more than `count_max`, or something older than `age_seconds`. Counts no further than
-- it must.
SELECT s.subscription_id, w.waiting > %(count_max)s::int AS too_many, t.at - make_interval(secs => %(age_seconds)s::float8) AS too_old
FROM statesvc.subscription s
CROSS JOIN (SELECT statesvc.clock() AS at) t
CROSS JOIN LATERAL (
    SELECT count(*) AS waiting, min(q.created_at) AS oldest FROM (
        SELECT o.created_at FROM statesvc.outbox o WHERE o.subscription_id = s.subscription_id LIMIT %(count_max)s::int + 1
    ) q
) w
WHERE s.coalesces AND s.deleted_at IS NULL
    AND (w.waiting > %(count_max)s::int OR w.oldest < t.at - make_interval(secs => %(age_seconds)s::float8));

-- name: collapsible
-- Return a window of what waits for a subscription: its shipments, and of which more than one notification waits (and the oldest is too
-- old, unless there are too many of all). Observations stand for themselves.
SELECT w.shipment_id, count(*) > 1 AND (%(too_many)s::boolean OR min(w.created_at) < %(too_old)s::timestamptz) AS collapses
FROM (
    SELECT o.shipment_id, o.created_at FROM statesvc.outbox o
    WHERE o.subscription_id = %(subscription_id)s AND o.shipment_id > %(after)s::uuid AND o.sequence > 0
    ORDER BY o.shipment_id, o.sequence LIMIT %(window)s
) w
GROUP BY w.shipment_id ORDER BY w.shipment_id;

-- name: lock_waiting
-- Return what waits of these shipments without a lease, with all attempts at it, those before a replay included. One that stands for others
-- already is not given more to stand for.
SELECT o.shipment_id, o.sequence, o.earlier_attempts + o.attempts, EXISTS (
    SELECT FROM statesvc.notification_gap g
    WHERE g.shipment_id = o.shipment_id AND g.sequence = o.sequence AND g.subscription_id = o.subscription_id)
FROM statesvc.outbox o
WHERE o.subscription_id = %(subscription_id)s AND o.shipment_id = ANY (%(shipment_ids)b::uuid[])
    AND (o.token IS NULL OR o.available_at <= statesvc.clock()) AND o.sequence > 0
ORDER BY o.shipment_id, o.sequence FOR UPDATE OF o SKIP LOCKED;

-- name: read_skipped
-- Return what the notifications that are left out stand for themselves, in the order that was asked for; and of that, what has not ended
-- yet.
SELECT g.skipped, g.from_sequence, g.to_sequence, CASE WHEN NOT EXISTS (
    SELECT FROM statesvc.attempt a
    WHERE a.shipment_id = u.shipment_id AND a.sequence = u.sequence AND a.subscription_id = %(subscription_id)s
        AND a.recorded_at > g.recorded_at AND a.outcome <> 'late') THEN g.covers END
FROM unnest(%(shipment_ids)b::uuid[], %(sequences)b::int[]) WITH ORDINALITY AS u(shipment_id, sequence, place)
LEFT JOIN statesvc.notification_gap g
    ON g.shipment_id = u.shipment_id AND g.sequence = u.sequence AND g.subscription_id = %(subscription_id)s
ORDER BY u.place;

-- name: write_gaps
-- Have notifications say what they stand for.
INSERT INTO statesvc.notification_gap (shipment_id, sequence, subscription_id, recorded_at, skipped, from_sequence, to_sequence, covers)
SELECT u.shipment_id, u.sequence, %(subscription_id)s, statesvc.clock(), u.skipped, u.from_sequence, u.to_sequence,
    string_to_array(u.covers, ' ')::int[]
FROM unnest(%(shipment_ids)b::uuid[], %(sequences)b::int[], %(skipped)b::int[], %(from_sequences)b::int[], %(to_sequences)b::int[],
    %(covers)b::text[])
    AS u(shipment_id, sequence, skipped, from_sequence, to_sequence, covers);

-- name: take_out
-- Take what is left out from the outbox; it was locked.
DELETE FROM statesvc.outbox o
USING unnest(%(shipment_ids)b::uuid[], %(sequences)b::int[]) AS u(shipment_id, sequence)
WHERE o.subscription_id = %(subscription_id)s AND o.shipment_id = u.shipment_id AND o.sequence = u.sequence;

-- name: bring_forward
-- Make due what stands for others, which need not wait for the retry of one of them.
UPDATE statesvc.outbox o SET available_at = t.at
FROM unnest(%(shipment_ids)b::uuid[], %(sequences)b::int[]) AS u(shipment_id, sequence) CROSS JOIN (SELECT statesvc.clock() AS at) t
WHERE o.subscription_id = %(subscription_id)s AND o.shipment_id = u.shipment_id AND o.sequence = u.sequence AND o.available_at > t.at;
