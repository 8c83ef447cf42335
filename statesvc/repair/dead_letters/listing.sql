-- name: list_dead_letters
-- A page of dead letters, the newest first.
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
-- One dead letter.
SELECT d.dead_letter_id, d.kind, d.cause, d.carrier_id, d.created_at, d.message_id, d.received_at, d.raw_type, d.raw_code, d.webhook_id,
    d.detail, d.attempts, d.worker, d.normalizer, d.resolved_at, d.resolution, d.resolved_by, d.why, d.run_id
FROM statesvc.dead_letter d
WHERE d.dead_letter_id = %(dead_letter_id)s;

-- name: statements_of_code
-- How often an unknown code was said and on how many shipments, and the latest messages among these that said it, from the first
-- `count_max` events that may be meant: an event's `carrier_code` is type, code and reason joined by '/', so it begins with `carrier_code`.
-- Derived from the log, so that pushing the code again writes no counter.
WITH candidate AS MATERIALIZED (
    SELECT * FROM (
        SELECT e.shipment_id, e.message_id, e.received_at, e.canonical FROM statesvc.event e
        WHERE e.kind = 'unmapped' AND e.carrier_id = %(carrier_id)s
            AND e.carrier_code ~>=~ %(carrier_code)s AND e.carrier_code ~<~ (%(carrier_code)s || '0')
        UNION ALL
        SELECT e.shipment_id, e.message_id, e.received_at, e.canonical FROM statesvc.event e
        WHERE e.kind = 'unmapped' AND e.carrier_id = %(carrier_id)s AND %(carrier_code)s::text IS NULL
    ) e LIMIT %(count_max)s
), said AS MATERIALIZED (
    SELECT c.shipment_id, c.message_id, c.received_at
    FROM candidate c CROSS JOIN LATERAL (SELECT convert_from(c.canonical, 'UTF8')::jsonb -> 'raw' AS raw) r
    WHERE r.raw ->> 'type' IS NOT DISTINCT FROM %(raw_type)s::text AND r.raw ->> 'code' IS NOT DISTINCT FROM %(raw_code)s::text
)
SELECT (SELECT count(*) FROM said) AS events, (SELECT count(DISTINCT shipment_id) FROM said) AS shipments,
    (SELECT count(*) FROM candidate) >= %(count_max)s AS counts_capped,
    ARRAY(SELECT s.message_id FROM said s GROUP BY s.message_id ORDER BY max(s.received_at) DESC, s.message_id LIMIT %(examples_max)s)
        AS message_ids;
