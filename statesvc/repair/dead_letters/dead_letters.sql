-- part: columns
SELECT d.dead_letter_id, d.kind, d.cause, d.carrier_id, d.created_at, d.message_id, d.received_at, d.raw_type, d.raw_code, d.webhook_id,
    d.detail, d.attempts, d.worker, d.normalizer, d.resolved_at, d.resolution, d.resolved_by, d.why, d.run_id
FROM statesvc.dead_letter d

-- part: fits
(%(ids)s::bigint[] IS NULL OR d.dead_letter_id = ANY (%(ids)s)) AND (%(kind)s::text IS NULL OR d.kind = %(kind)s)
    AND (%(carrier_id)s::text IS NULL OR d.carrier_id = %(carrier_id)s) AND (%(cause)s::text IS NULL OR d.cause = %(cause)s)
    AND (%(since)s::timestamptz IS NULL OR d.created_at >= %(since)s) AND (%(until)s::timestamptz IS NULL OR d.created_at < %(until)s)

-- part: way
CASE WHEN d.kind = 'code' THEN 'read_code' WHEN d.kind = 'notification' THEN 'send_again'
    WHEN d.cause = 'rejected_member' THEN 'read_again' ELSE 'put_back' END

-- part: replayable
d.resolved_at IS NULL AND d.dead_letter_id <= %(up_to)s AND (d.kind = 'notification' OR d.carrier_id = ANY (%(carriers)s::text[]))
    AND {fits}

-- name: list_dead_letters
-- Return a page of dead letters, the newest first.
{columns}
WHERE {fits} AND (%(open)s::boolean IS NULL OR (d.resolved_at IS NULL) = %(open)s) AND d.dead_letter_id < %(before)s::bigint
ORDER BY d.dead_letter_id DESC LIMIT %(limit)s;

-- name: dead_letter
-- Return one dead letter.
{columns} WHERE d.dead_letter_id = %(dead_letter_id)s;

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
    WHERE d.resolved_at IS NULL AND {fits}
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
-- Return the latest attempts at the notification of a dead letter, oldest first: those of its entries in the log, and those since.
SELECT x.number, x.worker, x.started_at, x.ended_at, x.outcome, CASE WHEN x.status_code IS NOT NULL THEN 'status ' || x.status_code END AS error,
    NULL::text AS normalizer
FROM statesvc.dead_letter d CROSS JOIN LATERAL (
    (SELECT t.number, b.writer AS worker, t.started_at, a.recorded_at AS ended_at, t.outcome, t.status_code
    FROM statesvc.attempt a
    CROSS JOIN LATERAL statesvc.tries_of(a.sequence, a.number, a.outcome, a.status_code, a.duration_ms, a.started_at, a.tries) AS t
    LEFT JOIN statesvc.batch b ON b.batch_id = a.batch_id AND b.recorded_from = a.recorded_at
    WHERE a.shipment_id = d.shipment_id AND a.sequence = d.sequence AND a.subscription_id = d.subscription_id
        AND t.sequence = a.sequence)
    UNION ALL
    (SELECT o.number, o.worker, o.started_at, o.recorded_at, o.outcome, o.status_code FROM statesvc.open_attempt o
    WHERE o.shipment_id = d.shipment_id AND o.sequence = d.sequence AND o.subscription_id = d.subscription_id)
    ORDER BY 1 DESC, 4 DESC LIMIT %(limit)s
) x
WHERE d.dead_letter_id = %(dead_letter_id)s
ORDER BY x.number, x.ended_at;

-- name: related
-- Return the other dead letters of the same message, or of the same notification, oldest first.
SELECT d.dead_letter_id, d.created_at, d.cause, d.detail, d.attempts, d.resolved_at, d.resolution, d.resolved_by, d.why, d.run_id
FROM statesvc.dead_letter d
WHERE (d.message_id = %(message_id)s AND d.kind = 'message' OR d.webhook_id = %(webhook_id)s) AND d.dead_letter_id <> %(dead_letter_id)s
ORDER BY d.dead_letter_id LIMIT %(limit)s;

-- name: newest_dead_letter
-- Return the id of the newest dead letter; 0: there is none.
SELECT coalesce(max(d.dead_letter_id), 0) FROM statesvc.dead_letter d;

-- name: plan
-- Return how many open dead letters a filter means, and what stands in the way of how many, by kind, cause and carrier.
SELECT d.kind, d.cause, d.carrier_id, statesvc.replay_obstacle(d) AS obstacle, count(*)
FROM statesvc.dead_letter d
WHERE d.resolved_at IS NULL AND d.dead_letter_id <= %(up_to)s AND {fits}
GROUP BY 1, 2, 3, 4;

-- name: next_dead_letters
-- Return the next open dead letters that a filter means and that are replayed in one of these ways, oldest first.
SELECT d.dead_letter_id, d.kind, d.carrier_id, d.message_id FROM statesvc.dead_letter d
WHERE {replayable} AND d.dead_letter_id > %(after)s AND {way} = ANY (%(ways)s::text[])
ORDER BY d.dead_letter_id LIMIT %(limit)s;

-- name: count_remaining
-- Return how many open dead letters a replay has not come to: of `ways` those above `after`, of `later_ways` all.
SELECT count(*)
FROM statesvc.dead_letter d CROSS JOIN LATERAL (SELECT {way} AS way) w
WHERE {replayable} AND (w.way = ANY (%(later_ways)s::text[]) OR w.way = ANY (%(ways)s::text[]) AND d.dead_letter_id > %(after)s);

-- name: put_back
-- Put messages and notifications back where they came from and resolve their dead letters, each once.
SELECT r.dead_letter_id, r.obstacle FROM statesvc.replay_dead_letters(%(ids)s::bigint[], %(actor)s, %(why)s, %(run_id)s) r;

-- name: put_back_fanouts
-- Return the changes that the notifications of these dead letters are about, by the leaf hash of the event, as their fan-out says it; NULL:
-- its entries are archived.
SELECT d.shipment_id, d.sequence, NULL::bytea, f.canonical, n.from_status, n.to_status, array_agg(d.subscription_id ORDER BY d.subscription_id), true,
    CASE WHEN d.sequence < 0 THEN n.type END
FROM statesvc.dead_letter d
JOIN statesvc.notification n
    ON n.shipment_id = d.shipment_id AND n.sequence = d.sequence AND n.subscription_id = d.subscription_id
LEFT JOIN LATERAL (
    SELECT w.canonical FROM statesvc.fanout w
    WHERE w.shipment_id = d.shipment_id AND w.sequence = d.sequence LIMIT 1
) f ON true
WHERE d.dead_letter_id = ANY (%(ids)s::bigint[]) AND d.kind = 'notification'
GROUP BY d.shipment_id, d.sequence, n.from_status, n.to_status, n.type, f.canonical ORDER BY d.shipment_id, d.sequence;

-- name: obstacle
-- Return what stands in the way of replaying one dead letter.
SELECT statesvc.replay_obstacle(d) FROM statesvc.dead_letter d WHERE d.dead_letter_id = %(dead_letter_id)s;

-- name: verdicts
-- Return the outcome of dead letters that were put back. `failing`: a notification that was tried again, in vain so far.
SELECT d.dead_letter_id, CASE
    WHEN d.kind = 'notification' THEN coalesce(
        (SELECT CASE WHEN o.attempts > 0 AND o.token IS NULL THEN 'failing' ELSE 'waiting' END FROM statesvc.outbox o
            WHERE o.subscription_id = d.subscription_id AND o.shipment_id = d.shipment_id AND o.sequence = d.sequence),
        CASE WHEN EXISTS (SELECT FROM statesvc.dead_letter n WHERE n.webhook_id = d.webhook_id AND n.dead_letter_id > d.dead_letter_id)
            THEN 'buried' ELSE 'settled' END)
    WHEN EXISTS (SELECT FROM statesvc.inbox q WHERE q.message_id = d.message_id) THEN 'waiting'
    WHEN EXISTS (SELECT FROM statesvc.dead_letter n WHERE n.message_id = d.message_id AND n.dead_letter_id > d.dead_letter_id
        AND n.kind = 'message' AND n.cause <> 'rejected_member') THEN 'buried'
    ELSE 'settled'
END AS verdict
FROM statesvc.dead_letter d WHERE d.dead_letter_id = ANY (%(ids)s::bigint[]);

-- name: replayed_by_run
-- Return how many dead letters a run has replayed.
SELECT count(*) FROM statesvc.dead_letter d WHERE d.run_id = %(run_id)s;

-- name: resolve
-- Resolve dead letters that were read again.
UPDATE statesvc.dead_letter d
SET resolved_at = statesvc.clock(), resolution = 'replayed', resolved_by = %(actor)s, why = %(why)s, run_id = %(run_id)s
WHERE d.dead_letter_id = ANY (%(ids)s::bigint[]) AND d.resolved_at IS NULL
RETURNING d.dead_letter_id;

-- name: discard
-- Discard open dead letters, a bounded number, oldest first, without waiting for locks: what another operator replays meanwhile is left
-- alone.
UPDATE statesvc.dead_letter d
SET resolved_at = statesvc.clock(), resolution = 'discarded', resolved_by = %(actor)s, why = %(why)s, run_id = %(run_id)s
WHERE d.dead_letter_id IN (
    SELECT d.dead_letter_id FROM statesvc.dead_letter d WHERE d.resolved_at IS NULL AND d.dead_letter_id <= %(up_to)s AND {fits}
    ORDER BY d.dead_letter_id LIMIT %(limit)s FOR UPDATE SKIP LOCKED)
RETURNING d.dead_letter_id;
