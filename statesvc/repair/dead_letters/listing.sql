-- name: list_dead_letters
-- Return a page of dead letters, the newest first.
SELECT d.dead_letter_id, d.kind, d.cause, d.carrier_id, d.created_at, d.message_id, d.received_at, d.raw_type, d.raw_code, d.webhook_id,
    d.detail, d.attempts, d.worker, d.normalizer, d.resolved_at, d.resolution, d.resolved_by, d.why, d.run_id
FROM statesvc.dead_letter d
WHERE (%(kind)s::text IS NULL OR d.kind = %(kind)s)
    AND (%(carrier_id)s::text IS NULL OR d.carrier_id = %(carrier_id)s)
    AND (%(cause)s::text IS NULL OR d.cause = %(cause)s)
    AND (%(since)s::timestamptz IS NULL OR d.created_at >= %(since)s)
    AND (%(until)s::timestamptz IS NULL OR d.created_at < %(until)s)
    AND (%(open)s::boolean IS NULL OR (d.resolved_at IS NULL) = %(open)s)
    AND d.dead_letter_id < %(before)s::bigint
ORDER BY d.dead_letter_id DESC
LIMIT %(limit)s;

-- name: dead_letter
-- Return one dead letter.
SELECT d.dead_letter_id, d.kind, d.cause, d.carrier_id, d.created_at, d.message_id, d.received_at, d.raw_type, d.raw_code, d.webhook_id,
    d.detail, d.attempts, d.worker, d.normalizer, d.resolved_at, d.resolution, d.resolved_by, d.why, d.run_id
FROM statesvc.dead_letter d
WHERE d.dead_letter_id = %(dead_letter_id)s;

-- name: code_occurrences
-- Return of each unknown code how often it came and on how many shipments, and the latest messages among these, from the first `count_max`
-- events that may be meant: an event's `carrier_code` is type, code and reason joined by '/', so it begins with `carrier_code`. All texts
-- in place of a code are `text` here; in the log each has its digest behind that. Derived from the log, so that pushing the code again
-- writes no counter.
SELECT w.dead_letter_id, o.events, o.shipments, o.counts_capped, o.message_ids
FROM unnest(%(dead_letter_ids)s::bigint[], %(carrier_ids)s::text[], %(carrier_codes)s::text[], %(raw_types)s::text[], %(raw_codes)s::text[])
    AS w (dead_letter_id, carrier_id, carrier_code, raw_type, raw_code)
CROSS JOIN LATERAL (
    WITH candidate AS MATERIALIZED (
        SELECT * FROM (
            SELECT e.shipment_id, e.message_id, e.received_at, e.raw_type, e.raw_code FROM statesvc.event e
            WHERE (e.kind = 'unmapped' OR e.by_category) AND e.carrier_id = w.carrier_id
                AND e.carrier_code ~>=~ w.carrier_code AND e.carrier_code ~<~ (w.carrier_code || '0')
            UNION ALL
            SELECT e.shipment_id, e.message_id, e.received_at, e.raw_type, e.raw_code FROM statesvc.event e
            WHERE (e.kind = 'unmapped' OR e.by_category) AND e.carrier_id = w.carrier_id AND w.carrier_code IS NULL
        ) e LIMIT %(count_max)s
    ), occurrence AS MATERIALIZED (
        SELECT c.shipment_id, c.message_id, c.received_at
        FROM candidate c
        WHERE regexp_replace(c.raw_type, '^text-[a-z2-7]{26}$', 'text') IS NOT DISTINCT FROM w.raw_type
            AND regexp_replace(c.raw_code, '^text-[a-z2-7]{26}$', 'text') IS NOT DISTINCT FROM w.raw_code
    )
    SELECT (SELECT count(*) FROM occurrence) AS events, (SELECT count(DISTINCT shipment_id) FROM occurrence) AS shipments,
        (SELECT count(*) FROM candidate) >= %(count_max)s AS counts_capped,
        ARRAY(SELECT s.message_id FROM occurrence s GROUP BY s.message_id ORDER BY max(s.received_at) DESC, s.message_id LIMIT %(examples_max)s)
            AS message_ids
) o;

-- name: groups
-- Return the open dead letters by kind, cause and carrier, and of each group the details that occur most. Counts the oldest `count_max`.
WITH open_dead_letter AS MATERIALIZED (
    SELECT d.kind, d.cause, d.carrier_id, d.created_at, d.dead_letter_id,
        CASE WHEN d.kind = 'code' THEN concat_ws('/', d.raw_type, d.raw_code) || coalesce(', text says ' || nullif(d.detail, ''), '') ELSE d.detail END AS detail
    FROM statesvc.dead_letter d
    WHERE d.resolved_at IS NULL
        AND (%(kind)s::text IS NULL OR d.kind = %(kind)s)
        AND (%(carrier_id)s::text IS NULL OR d.carrier_id = %(carrier_id)s)
        AND (%(cause)s::text IS NULL OR d.cause = %(cause)s)
        AND (%(since)s::timestamptz IS NULL OR d.created_at >= %(since)s)
        AND (%(until)s::timestamptz IS NULL OR d.created_at < %(until)s)
    ORDER BY d.dead_letter_id LIMIT %(count_max)s
), detail AS (
    SELECT l.kind, l.cause, l.carrier_id, l.detail, count(*) AS dead_letters,
        row_number() OVER (PARTITION BY l.kind, l.cause, l.carrier_id ORDER BY count(*) DESC, l.detail) AS place
    FROM open_dead_letter l GROUP BY 1, 2, 3, 4
)
SELECT l.kind, l.cause, l.carrier_id, count(*) AS dead_letters, min(l.created_at) AS oldest_at, max(l.created_at) AS newest_at,
    (array_agg(l.dead_letter_id ORDER BY l.dead_letter_id DESC))[1:%(examples_max)s::int] AS dead_letter_ids,
    (SELECT json_agg(json_build_object('detail', d.detail, 'dead_letters', d.dead_letters) ORDER BY d.place) FROM detail d
        WHERE d.kind = l.kind AND d.cause = l.cause AND d.carrier_id = l.carrier_id AND d.place <= %(details_max)s) AS details
FROM open_dead_letter l GROUP BY 1, 2, 3 ORDER BY count(*) DESC, 1, 2, 3;

-- name: attempts_at_message
-- Return the latest attempts at a message that did not settle it, over all its replays, oldest first.
SELECT a.attempt AS number, a.worker, a.started_at, a.ended_at, a.outcome, a.error, a.normalizer FROM (
    SELECT * FROM statesvc.message_attempt m WHERE m.message_id = %(message_id)s ORDER BY m.attempt_id DESC LIMIT %(limit)s
) a ORDER BY a.attempt_id;

-- name: attempts_at_notification
-- Return the latest attempts at a notification, oldest first: those of its entries in the log, and those since.
SELECT x.number, x.worker, x.started_at, x.ended_at, x.outcome, CASE WHEN x.status_code IS NOT NULL THEN 'status ' || x.status_code END AS error,
    NULL::text AS normalizer
FROM (
    (SELECT t.number, b.writer AS worker, t.started_at, a.recorded_at AS ended_at, t.outcome, t.status_code
    FROM statesvc.attempt a
    CROSS JOIN LATERAL statesvc.tries_of(a.sequence, a.number, a.outcome, a.status_code, a.duration_ms, a.started_at, a.tries) AS t
    LEFT JOIN statesvc.batch b ON b.batch_id = a.batch_id AND b.recorded_from = a.recorded_at
    WHERE a.shipment_id = %(shipment_id)s AND a.sequence = %(sequence)s AND a.subscription_id = %(subscription_id)s
        AND t.sequence = a.sequence)
    UNION ALL
    (SELECT o.number, o.worker, o.started_at, o.recorded_at, o.outcome, o.status_code FROM statesvc.open_attempt o
    WHERE o.shipment_id = %(shipment_id)s AND o.sequence = %(sequence)s AND o.subscription_id = %(subscription_id)s)
    ORDER BY 1 DESC, 4 DESC LIMIT %(limit)s
) x
ORDER BY x.number, x.ended_at;

-- name: notification_of
-- Return which notification a dead letter is about.
SELECT d.subscription_id, d.shipment_id, d.sequence FROM statesvc.dead_letter d WHERE d.dead_letter_id = %(dead_letter_id)s;

-- name: related_by_message
-- Return the other dead letters of the same message, oldest first.
SELECT d.dead_letter_id, d.created_at, d.cause, d.detail, d.attempts, d.resolved_at, d.resolution, d.resolved_by, d.why, d.run_id
FROM statesvc.dead_letter d
WHERE d.message_id = %(message_id)s AND d.kind = 'message' AND d.dead_letter_id <> %(dead_letter_id)s
ORDER BY d.dead_letter_id LIMIT %(limit)s;

-- name: related_by_notification
-- Return the other dead letters of the same notification, oldest first.
SELECT d.dead_letter_id, d.created_at, d.cause, d.detail, d.attempts, d.resolved_at, d.resolution, d.resolved_by, d.why, d.run_id
FROM statesvc.dead_letter d
WHERE d.webhook_id = %(webhook_id)s AND d.dead_letter_id <> %(dead_letter_id)s
ORDER BY d.dead_letter_id LIMIT %(limit)s;
