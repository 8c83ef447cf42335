-- name: day_bodies
-- Return the next bodies of one day in the order of their ids, each with what its key is wrapped in; as many as fit the bytes, at least
-- one. Every other table is probed by its key, body by body: no plan of this may read one whole.
WITH next AS MATERIALIZED (
    SELECT b.message_id, b.received_at, b.carrier_id, b.commitment, b.headers, octet_length(b.sealed) AS sealed_bytes,
        sum(octet_length(b.sealed)) OVER (ORDER BY b.message_id) AS bytes_upto
    FROM (
        SELECT * FROM statesvc.body b
        WHERE b.received_at >= %(from)s::timestamptz AND b.received_at < %(until)s::timestamptz AND b.message_id > %(after)s
        ORDER BY b.message_id LIMIT %(limit)s
    ) b
)
SELECT n.message_id, n.received_at, n.carrier_id, n.commitment, n.headers, b.sealed,
    CASE WHEN m.settled THEN m.sealed_key ELSE coalesce(q.sealed_key, d.sealed_key) END AS sealed_key,
    coalesce(m.shipments, '{}') AS shipments, coalesce(m.held, false) AS held
FROM next n
JOIN LATERAL (
    SELECT b.sealed FROM statesvc.body b
    WHERE b.message_id = n.message_id AND b.received_at = n.received_at
        AND b.received_at >= %(from)s::timestamptz AND b.received_at < %(until)s::timestamptz LIMIT 1
) b ON true
LEFT JOIN LATERAL (
    SELECT true AS settled, m.sealed_key, m.shipments, %(holds)s AND statesvc.under_legal_hold(m.shipments) AS held
    FROM statesvc.message m
    WHERE m.message_id = n.message_id AND m.received_at = n.received_at
        AND m.received_at >= %(from)s::timestamptz AND m.received_at < %(until)s::timestamptz LIMIT 1
) m ON true
LEFT JOIN LATERAL (SELECT q.sealed_key FROM statesvc.inbox q WHERE q.message_id = n.message_id LIMIT 1) q ON true
LEFT JOIN LATERAL (
    SELECT d.sealed_key FROM statesvc.dead_letter d
    WHERE d.message_id = n.message_id AND d.kind = 'message' AND d.sealed_key IS NOT NULL ORDER BY d.dead_letter_id DESC LIMIT 1
) d ON true
WHERE n.bytes_upto - n.sealed_bytes < %(bytes_max)s
ORDER BY n.message_id;

-- name: any_hold
-- Return whether any legal hold stands. Most installations have none, and then no message is asked about.
SELECT EXISTS (SELECT FROM statesvc.legal_hold h WHERE h.released_at IS NULL);
