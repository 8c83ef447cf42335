-- name: holds
-- Return the kill switches that are on: of which carrier (`*`: of all), for how long, who turned it on and why.
SELECT r.carrier_id, extract(epoch FROM statesvc.clock() - r.changed_at)::float8, r.changed_by, r.why
FROM statesvc.rollout r WHERE r.hold ORDER BY r.carrier_id;

-- name: silent
-- Return the carriers that pushed plenty at this time yesterday, and nothing for hours.
SELECT c.carrier_id, extract(epoch FROM statesvc.clock() - c.silent_since)::float8 FROM statesvc.silent_carriers() c;

-- name: pushes
-- Return what each carrier pushed within the last hour: new, repeated, refused.
SELECT l.carrier_id, coalesce(sum(t.accepted), 0)::bigint, coalesce(sum(t.duplicates), 0)::bigint, coalesce(sum(t.refused), 0)::bigint
FROM statesvc.lane l
LEFT JOIN statesvc.ack_count t ON t.carrier_id = l.carrier_id AND t.minute > statesvc.clock() - interval '1 hour'
WHERE l.carrier_id <> ''
GROUP BY l.carrier_id;

-- name: unsent
-- Return the subscriptions of which every try fails, and those that the service disabled: of each kind the `named_max` that are so for
-- longest, and any of `late`; how many of the kind there are, and what waits for each.
WITH unsent AS (
    SELECT s.subscription_id::text, s.name, s.url, f.since, f.failures, f.last_outcome, f.last_status_code, s.disabled_at, s.disabled_why,
        count(*) OVER (PARTITION BY s.disabled_at IS NULL) AS alike,
        row_number() OVER (PARTITION BY s.disabled_at IS NULL ORDER BY coalesce(s.disabled_at, f.since)) AS place
    FROM statesvc.subscription s
    LEFT JOIN statesvc.subscription_failing f ON f.subscription_id = s.subscription_id
    WHERE s.deleted_at IS NULL AND (s.disabled_at IS NOT NULL OR f.since < statesvc.clock() - interval '1 minute')
)
SELECT u.subscription_id, u.name, u.url, extract(epoch FROM statesvc.clock() - u.since)::float8, u.failures, u.last_outcome, u.last_status_code,
    extract(epoch FROM statesvc.clock() - u.disabled_at)::float8, u.disabled_why, u.alike,
    (SELECT count(*) FROM (SELECT FROM statesvc.outbox o WHERE o.subscription_id = u.subscription_id::uuid LIMIT %(count_max)s) o)
FROM unsent u
WHERE u.place <= %(named_max)s OR u.subscription_id = ANY (%(late)s::text[])
ORDER BY u.disabled_at IS NULL DESC, u.place;

-- name: invalid_indexes
-- Return the invalid indexes of the schema, with their table.
SELECT i.indexrelid::regclass::text, i.indrelid::regclass::text FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
WHERE NOT i.indisvalid AND c.relnamespace = 'statesvc'::regnamespace AND c.relkind = 'i' ORDER BY 1;
