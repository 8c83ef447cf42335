-- name: refusal
-- Why nothing is sealed and nobody is notified, and since when.
SELECT r.why, extract(epoch FROM statesvc.clock() - r.since)::float8 FROM statesvc.sealing_refusal r;

-- name: silent
-- Carriers that pushed plenty at this time yesterday, and nothing for hours.
SELECT l.carrier_id, extract(epoch FROM statesvc.clock() - max(t.last_at))::float8
FROM statesvc.lane l
JOIN statesvc.ingest_tally t ON t.carrier_id = l.carrier_id AND t.minute > statesvc.clock() - interval '29 hours'
GROUP BY l.carrier_id
HAVING max(t.last_at) < statesvc.clock() - interval '4 hours'
    AND sum(t.accepted + t.duplicates) FILTER (
        WHERE t.minute BETWEEN statesvc.clock() - interval '28 hours' AND statesvc.clock() - interval '24 hours') > 50;

-- name: pushes
-- What each carrier pushed within the last hour: new, repeated, refused.
SELECT l.carrier_id, coalesce(sum(t.accepted), 0)::bigint, coalesce(sum(t.duplicates), 0)::bigint, coalesce(sum(t.refused), 0)::bigint
FROM statesvc.lane l
LEFT JOIN statesvc.ingest_tally t ON t.carrier_id = l.carrier_id AND t.minute > statesvc.clock() - interval '1 hour'
WHERE l.carrier_id <> ''
GROUP BY l.carrier_id;

-- name: unsent
-- Subscriptions of which every try fails, and those that the service disabled, with what waits for them.
SELECT s.subscription_id::text, s.url, extract(epoch FROM statesvc.clock() - f.since)::float8, f.failures, f.last_outcome, f.last_status_code,
    extract(epoch FROM statesvc.clock() - s.disabled_at)::float8, s.disabled_why,
    (SELECT count(*) FROM (SELECT FROM statesvc.outbox o WHERE o.subscription_id = s.subscription_id LIMIT %(count_max)s) o)
FROM statesvc.subscription s
LEFT JOIN statesvc.subscription_failing f ON f.subscription_id = s.subscription_id
WHERE s.deleted_at IS NULL AND (s.disabled_at IS NOT NULL OR f.since < statesvc.clock() - interval '1 minute')
ORDER BY s.disabled_at IS NULL DESC, f.since
LIMIT %(limit)s;
