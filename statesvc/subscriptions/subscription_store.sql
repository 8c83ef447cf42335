-- name: insert
-- Makes a subscription.
INSERT INTO statesvc.subscription (subscription_id, created_at, created_by, owner, url, carriers, statuses, types, shipments, payload, pii,
    signature, rate_per_second, coalesces, give_up_after, sealed_secrets, sealed_login)
VALUES (%(subscription_id)s, statesvc.clock(), %(created_by)s, %(owner)s, %(url)s, %(carriers)s::text[], %(statuses)s::text[], %(types)s::text[],
    %(shipments)s::text[], %(payload)s, %(pii)s, %(signature)s, %(rate_per_second)s::float8, %(coalesce)s, %(give_up_after)s::jsonb,
    %(sealed_secrets)b::bytea[], %(sealed_login)b::bytea);

-- name: find
-- One subscription that is not deleted.
SELECT s.subscription_id, s.created_at, s.created_by, s.owner, s.url, s.carriers, s.statuses, s.types, s.shipments, s.payload, s.pii, s.signature,
    s.rate_per_second, s.coalesces AS "coalesce", s.give_up_after, s.sealed_login IS NOT NULL AS has_login, s.paused_at, s.disabled_at, s.disabled_why, s.missed_since, f.since AS failing_since, f.failures,
    f.last_outcome, f.last_status_code
FROM statesvc.subscription s LEFT JOIN statesvc.subscription_failing f ON f.subscription_id = s.subscription_id
WHERE s.subscription_id = %(subscription_id)s AND s.deleted_at IS NULL;

-- name: page
-- Subscriptions of one owner (NULL: of all) in one condition (NULL: any) that are not deleted, the oldest first, after a position.
SELECT s.subscription_id, s.created_at, s.created_by, s.owner, s.url, s.carriers, s.statuses, s.types, s.shipments, s.payload, s.pii, s.signature,
    s.rate_per_second, s.coalesces AS "coalesce", s.give_up_after, s.sealed_login IS NOT NULL AS has_login, s.paused_at, s.disabled_at, s.disabled_why, s.missed_since, f.since AS failing_since, f.failures,
    f.last_outcome, f.last_status_code
FROM statesvc.subscription s LEFT JOIN statesvc.subscription_failing f ON f.subscription_id = s.subscription_id
WHERE s.deleted_at IS NULL AND (%(owner)s::text IS NULL OR s.owner = %(owner)s)
    AND (%(condition)s::text IS NULL OR %(condition)s = CASE
        WHEN s.disabled_at IS NOT NULL THEN 'disabled' WHEN %(condition)s = 'failing' THEN CASE WHEN f.since IS NOT NULL THEN 'failing' END
        WHEN s.paused_at IS NOT NULL THEN 'paused' ELSE 'active' END)
    AND (%(after_created_at)s::timestamptz IS NULL
    OR (s.created_at, s.subscription_id) > (%(after_created_at)s::timestamptz, %(after_id)s::uuid))
ORDER BY s.created_at, s.subscription_id LIMIT %(limit)s;

-- name: lock_secrets
-- A subscription's sealed secrets and the time, for a rotation.
SELECT sealed_secrets, statesvc.clock(), signature FROM statesvc.subscription
WHERE subscription_id = %(subscription_id)s AND deleted_at IS NULL FOR NO KEY UPDATE;

-- name: read_means
-- Where a subscription's notifications go, its sealed secrets and login, and the time, for a test.
SELECT sealed_secrets, statesvc.clock(), url, sealed_login, payload, pii FROM statesvc.subscription
WHERE subscription_id = %(subscription_id)s AND deleted_at IS NULL;

-- name: read_all_secrets
-- The sealed secrets of several subscriptions and the time, for their public keys.
SELECT subscription_id, sealed_secrets, statesvc.clock() FROM statesvc.subscription
WHERE subscription_id = ANY (%(subscription_ids)s::uuid[]) AND deleted_at IS NULL;

-- name: set_secrets
-- Replaces the secrets.
UPDATE statesvc.subscription SET sealed_secrets = %(sealed_secrets)b::bytea[], signature = %(signature)s WHERE subscription_id = %(subscription_id)s;

-- name: owner
-- Whose a subscription is; that never changes.
SELECT owner FROM statesvc.subscription WHERE subscription_id = %(subscription_id)s AND deleted_at IS NULL;

-- name: lock_payload
-- What a subscription sends, which stays so until the transaction ends.
SELECT payload, pii FROM statesvc.subscription WHERE subscription_id = %(subscription_id)s AND deleted_at IS NULL FOR NO KEY UPDATE;

-- name: change
-- Changes where and what; the named columns only.
UPDATE statesvc.subscription SET
    url = CASE WHEN 'url' = ANY (%(named)s::text[]) THEN %(url)s::text ELSE url END,
    -- a login goes nowhere but to the URL that it came with; the same URL as it is shown, without one, changes nothing
    sealed_login = CASE WHEN 'url' = ANY (%(named)s::text[]) AND (%(url)s::text <> url OR %(sealed_login)b::bytea IS NOT NULL)
        THEN %(sealed_login)b::bytea ELSE sealed_login END,
    carriers = CASE WHEN 'carriers' = ANY (%(named)s::text[]) THEN %(carriers)s::text[] ELSE carriers END,
    statuses = CASE WHEN 'statuses' = ANY (%(named)s::text[]) THEN %(statuses)s::text[] ELSE statuses END,
    types = CASE WHEN 'types' = ANY (%(named)s::text[]) THEN %(types)s::text[] ELSE types END,
    shipments = CASE WHEN 'shipments' = ANY (%(named)s::text[]) THEN %(shipments)s::text[] ELSE shipments END,
    payload = CASE WHEN 'payload' = ANY (%(named)s::text[]) THEN %(payload)s::text ELSE payload END,
    pii = CASE WHEN 'pii' = ANY (%(named)s::text[]) THEN %(pii)s::boolean ELSE pii END,
    give_up_after = CASE WHEN 'give_up_after' = ANY (%(named)s::text[]) THEN %(give_up_after)s::jsonb ELSE give_up_after END,
    rate_per_second = CASE WHEN 'rate_per_second' = ANY (%(named)s::text[]) THEN %(rate_per_second)s::float8 ELSE rate_per_second END,
    coalesces = CASE WHEN 'coalesce' = ANY (%(named)s::text[]) THEN %(coalesce)s::boolean ELSE coalesces END
WHERE subscription_id = %(subscription_id)s AND deleted_at IS NULL;

-- name: pause
-- Notifications collect, nothing is sent.
UPDATE statesvc.subscription SET paused_at = coalesce(paused_at, statesvc.clock())
WHERE subscription_id = %(subscription_id)s AND deleted_at IS NULL;

-- name: resume
-- Sends again: ends a pause and a disablement.
UPDATE statesvc.subscription SET paused_at = NULL, disabled_at = NULL, disabled_why = NULL
WHERE subscription_id = %(subscription_id)s AND deleted_at IS NULL;

-- name: add_throttle
-- Each subscription has a row for its contracted rate and for the pauses that its receiver asks for.
INSERT INTO statesvc.throttle (subscription_id) VALUES (%(subscription_id)s) ON CONFLICT DO NOTHING;

-- name: call_again
-- Forgets that its receiver asked not to be called for a while.
UPDATE statesvc.throttle SET not_before = '-infinity' WHERE subscription_id = %(subscription_id)s;

-- name: begin_anew
-- Forgets how its receiver failed: it is judged by what it does from now on.
DELETE FROM statesvc.subscription_failing WHERE subscription_id = %(subscription_id)s;

-- name: delete
-- Nothing is sent or collected any more; what was sent stays in the log. Its secrets and login are forgotten. Answers what still waited.
UPDATE statesvc.subscription s SET deleted_at = statesvc.clock(), sealed_secrets = '{}', sealed_login = NULL
FROM statesvc.open_notifications(%(subscription_id)s) w
WHERE s.subscription_id = %(subscription_id)s AND s.deleted_at IS NULL
RETURNING w.open, w.open_since, w.open_until;

-- name: forget_tests
-- Of a deleted subscription.
DELETE FROM statesvc.test_attempt WHERE subscription_id = %(subscription_id)s;

-- name: attempts
-- What was tried for a subscription, the newest first, before a position: the tries at what has not ended, those of the entries of what
-- has, which count as of then, and tests.
SELECT n.webhook_id, x.shipment_id, x.sequence, x.number, x.outcome, x.status_code, x.duration_ms, x.started_at, x.recorded_at,
    n.type, n.carrier_id, n.tracking_number, x.last_number, coalesce(x.covering_id, n.webhook_id) AS covering_id, x.sealed_part, k.sealed_key
FROM (
    (SELECT o.shipment_id, o.sequence, o.number, o.outcome, o.status_code, o.duration_ms, o.started_at, o.recorded_at, o.sealed_part,
        NULL::int AS last_number, NULL AS covering_id
    FROM statesvc.open_attempt o
    WHERE o.subscription_id = %(subscription_id)s
        AND (%(before_recorded_at)s::timestamptz IS NULL OR o.recorded_at <= %(before_recorded_at)s::timestamptz))
    UNION ALL
    (SELECT a.shipment_id, t.sequence, t.number, t.outcome, t.status_code, t.duration_ms, t.started_at, a.recorded_at, a.sealed_part,
        a.number, a.webhook_id
    FROM statesvc.attempt a
    CROSS JOIN LATERAL (SELECT convert_from(a.canonical, 'UTF8')::jsonb AS document OFFSET 0) d
    CROSS JOIN LATERAL (
        SELECT a.sequence, r.* FROM jsonb_to_recordset(d.document -> 'tries')
            AS r(number int, outcome text, status_code int, duration_ms int, started_at timestamptz)
        UNION ALL
        SELECT (c ->> 'sequence')::int, r.* FROM jsonb_array_elements(d.document -> 'covers') c
        CROSS JOIN LATERAL jsonb_to_recordset(c -> 'tries')
            AS r(number int, outcome text, status_code int, duration_ms int, started_at timestamptz)
    ) t
    WHERE a.subscription_id = %(subscription_id)s
        AND (%(before_recorded_at)s::timestamptz IS NULL OR a.recorded_at <= %(before_recorded_at)s::timestamptz))
) x
LEFT JOIN statesvc.stream k ON k.shipment_id = x.shipment_id
JOIN statesvc.notification n ON n.shipment_id = x.shipment_id AND n.sequence = x.sequence AND n.subscription_id = %(subscription_id)s
WHERE %(before_recorded_at)s::timestamptz IS NULL OR (x.recorded_at, n.webhook_id, x.number)
    < (%(before_recorded_at)s::timestamptz, %(before_webhook_id)s::text, %(before_number)s::int)
UNION ALL
SELECT t.webhook_id, NULL, t.sequence, 1, t.outcome, t.status_code, t.duration_ms, t.started_at, t.recorded_at,
    t.type, t.carrier_id, t.tracking_number, NULL, t.webhook_id, NULL, NULL
FROM statesvc.test_attempt t
WHERE t.subscription_id = %(subscription_id)s AND (%(before_recorded_at)s::timestamptz IS NULL OR (t.recorded_at, t.webhook_id, 1)
    < (%(before_recorded_at)s::timestamptz, %(before_webhook_id)s::text, %(before_number)s::int))
ORDER BY recorded_at DESC, webhook_id DESC, number DESC LIMIT %(limit)s;

-- name: limiter
-- What the notifiers know of a subscription's receiver, summed up; of those that said so lately, because a dead one takes nothing back.
-- It may be called when the pause that it asked for is over and at least one notifier's breaker lets a probe through.
SELECT coalesce(sum(l.concurrency), 0)::int AS "limit", coalesce(sum(l.in_flight), 0)::int AS in_flight,
    (sum(l.mean_latency_seconds * l.concurrency) / sum(l.concurrency) FILTER (WHERE l.mean_latency_seconds IS NOT NULL)) AS mean_latency_seconds,
    CASE WHEN bool_or(l.breaker = 'open') THEN 'open' WHEN bool_or(l.breaker = 'half_open') THEN 'half_open' ELSE 'closed' END AS breaker,
    nullif(greatest(h.not_before, t.at, CASE WHEN bool_and(l.breaker = 'open') THEN min(l.open_until) END), t.at) AS next_allowed_at,
    count(l.worker)::int AS notifiers
FROM (SELECT statesvc.clock() AS at) t
LEFT JOIN statesvc.throttle h ON h.subscription_id = %(subscription_id)s
LEFT JOIN statesvc.limiter_state l ON l.subscription_id = %(subscription_id)s AND l.updated_at > t.at - interval '15 minutes'
GROUP BY t.at, h.not_before;
