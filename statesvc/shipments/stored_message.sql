-- name: message
-- Return one message, wherever it is: settled, waiting in the inbox, or the newest of its dead letters. An id that was acknowledged from a
-- spool leads to the message that was stored first.
WITH asked AS MATERIALIZED (
    SELECT coalesce((SELECT a.kept_id FROM statesvc.message_alias a WHERE a.message_id = %(message_id)s), %(message_id)s::uuid) AS message_id
)
SELECT * FROM (
    SELECT 1 AS rank, 'settled' AS state, m.message_id, m.carrier_id, m.received_at, m.settled_at, m.outcome, m.events, m.attempts,
        m.normalizer, m.worker, m.shipments, m.sealed_key
    FROM statesvc.message m WHERE m.message_id = (SELECT message_id FROM asked)
    UNION ALL
    SELECT 2, 'waiting', q.message_id, q.carrier_id, q.received_at, NULL, NULL, NULL, q.attempts, NULL, q.worker, '{}', q.sealed_key
    FROM statesvc.inbox q WHERE q.message_id = (SELECT message_id FROM asked)
    UNION ALL
    (SELECT 3, CASE WHEN d.resolved_at IS NULL THEN 'dead_letter' ELSE 'discarded' END, d.message_id, d.carrier_id, d.received_at, NULL, NULL,
        NULL, d.attempts, d.normalizer, d.worker, '{}', d.sealed_key
    FROM statesvc.dead_letter d WHERE d.message_id = (SELECT message_id FROM asked) AND d.kind = 'message' ORDER BY d.dead_letter_id DESC LIMIT 1)
) m ORDER BY m.rank LIMIT 1;

-- name: may_be_spooled
-- Return whether a spool may still hold a message with an id of this time, in milliseconds since 1970.
SELECT EXISTS (
    SELECT FROM statesvc.spool s
    -- the upper bound: a random id has a time of its own
    WHERE to_timestamp(%(unix_ms)s::bigint / 1000.0) BETWEEN s.clear_until AND statesvc.clock() + interval '1 minute');
