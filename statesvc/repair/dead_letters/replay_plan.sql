-- name: newest_dead_letter
-- Return the id of the newest dead letter; 0: there is none.
SELECT coalesce(max(d.dead_letter_id), 0) FROM statesvc.dead_letter d;

-- name: plan
-- Return how many open dead letters a filter means, and what stands in the way of how many, by kind, cause and carrier.
SELECT d.kind, d.cause, d.carrier_id, statesvc.replay_obstacle(d) AS obstacle, count(*)
FROM statesvc.dead_letter d
WHERE d.resolved_at IS NULL AND d.dead_letter_id <= %(up_to)s
    AND (%(ids)s::bigint[] IS NULL OR d.dead_letter_id = ANY (%(ids)s))
    AND (%(kind)s::text IS NULL OR d.kind = %(kind)s)
    AND (%(carrier_id)s::text IS NULL OR d.carrier_id = %(carrier_id)s)
    AND (%(cause)s::text IS NULL OR d.cause = %(cause)s)
    AND (%(since)s::timestamptz IS NULL OR d.created_at >= %(since)s)
    AND (%(until)s::timestamptz IS NULL OR d.created_at < %(until)s)
GROUP BY 1, 2, 3, 4;

-- name: next_dead_letters
-- Return the next open dead letters that a filter means and that are replayed in one of these ways, oldest first.
SELECT d.dead_letter_id, d.kind, d.carrier_id, d.message_id
FROM statesvc.dead_letter d
WHERE d.resolved_at IS NULL AND d.dead_letter_id > %(after)s AND d.dead_letter_id <= %(up_to)s
    AND (%(ids)s::bigint[] IS NULL OR d.dead_letter_id = ANY (%(ids)s))
    AND (%(kind)s::text IS NULL OR d.kind = %(kind)s)
    AND (%(carrier_id)s::text IS NULL OR d.carrier_id = %(carrier_id)s)
    AND (%(cause)s::text IS NULL OR d.cause = %(cause)s)
    AND (%(since)s::timestamptz IS NULL OR d.created_at >= %(since)s)
    AND (%(until)s::timestamptz IS NULL OR d.created_at < %(until)s)
    AND (d.kind = 'notification' OR d.carrier_id = ANY (%(carriers)s::text[]))
    AND CASE
        WHEN d.kind = 'code' THEN 'read_code'
        WHEN d.kind = 'notification' THEN 'send_again'
        WHEN d.cause = 'rejected_member' THEN 'read_again'
        ELSE 'put_back'
    END = ANY (%(ways)s::text[])
ORDER BY d.dead_letter_id LIMIT %(limit)s;

-- name: count_remaining
-- Return how many open dead letters a replay has not come to: of `ways` those above `after`, of `later_ways` all.
SELECT count(*)
FROM statesvc.dead_letter d CROSS JOIN LATERAL (SELECT CASE
        WHEN d.kind = 'code' THEN 'read_code'
        WHEN d.kind = 'notification' THEN 'send_again'
        WHEN d.cause = 'rejected_member' THEN 'read_again'
        ELSE 'put_back'
    END AS way) w
WHERE d.resolved_at IS NULL AND d.dead_letter_id <= %(up_to)s
    AND (%(ids)s::bigint[] IS NULL OR d.dead_letter_id = ANY (%(ids)s))
    AND (%(kind)s::text IS NULL OR d.kind = %(kind)s)
    AND (%(carrier_id)s::text IS NULL OR d.carrier_id = %(carrier_id)s)
    AND (%(cause)s::text IS NULL OR d.cause = %(cause)s)
    AND (%(since)s::timestamptz IS NULL OR d.created_at >= %(since)s)
    AND (%(until)s::timestamptz IS NULL OR d.created_at < %(until)s)
    AND (d.kind = 'notification' OR d.carrier_id = ANY (%(carriers)s::text[]))
    AND (w.way = ANY (%(later_ways)s::text[]) OR w.way = ANY (%(ways)s::text[]) AND d.dead_letter_id > %(after)s);
