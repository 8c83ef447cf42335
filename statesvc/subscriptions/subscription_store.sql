-- name: insert
-- Make a subscription.
INSERT INTO statesvc.subscription (subscription_id, created_at, created_by, owner, url, carriers, statuses, types, shipments, parcels, payload, pii,
    signature, rate_per_second, coalesces, give_up_after, max_age_seconds, name, description, header_names, sealed_headers, second_signature, sealed_secrets, sealed_login)
VALUES (%(subscription_id)s, statesvc.clock(), %(created_by)s, %(owner)s, %(url)s, %(carriers)s::text[], %(statuses)s::text[], %(types)s::text[],
    %(shipments)s::text[], %(parcels)s, %(payload)s, %(pii)s, %(key_type)s, %(rate_per_second)s::float8, %(coalesce)s, %(give_up_after)s::jsonb,
    %(max_age_seconds)s::float8, %(name)s, %(description)s, %(header_names)s::text[], %(sealed_headers)b::bytea, %(signature)s::jsonb, %(sealed_secrets)b::bytea[], %(sealed_login)b::bytea)
ON CONFLICT (subscription_id) DO NOTHING;

-- name: page
-- Return the subscriptions of one owner (NULL: of all) in one condition (NULL: any) that are not deleted, the oldest first, after a
-- position; or the one that is asked for.
SELECT s.subscription_id, s.created_at, s.created_by, s.owner, s.name, s.description, s.url, s.carriers, s.statuses, s.types, s.shipments, s.parcels, s.payload, s.pii, s.signature AS key_type, s.header_names, s.second_signature AS signature,
    s.rate_per_second, s.coalesces AS "coalesce", s.give_up_after, s.max_age_seconds, s.sealed_login IS NOT NULL AS has_login,
    s.signature = 'ed25519' OR cardinality(s.sealed_secrets) > 1 AS may_have_public_keys, s.paused_at, s.disabled_at, s.disabled_why, s.missed_since, f.since AS failing_since, f.failures,
    f.last_outcome, f.last_status_code
FROM statesvc.subscription s LEFT JOIN statesvc.subscription_failing f ON f.subscription_id = s.subscription_id
WHERE s.deleted_at IS NULL AND (%(owner)s::text IS NULL OR s.owner = %(owner)s)
    AND (%(subscription_id)s::uuid IS NULL OR s.subscription_id = %(subscription_id)s)
    AND (%(condition)s::text IS NULL OR %(condition)s = CASE
        WHEN s.disabled_at IS NOT NULL THEN 'disabled' WHEN %(condition)s = 'failing' THEN CASE WHEN f.since IS NOT NULL THEN 'failing' END
        WHEN s.paused_at IS NOT NULL THEN 'paused' ELSE 'active' END)
    AND (%(after_created_at)s::timestamptz IS NULL
    OR (s.created_at, s.subscription_id) > (%(after_created_at)s::timestamptz, %(after_id)s::uuid))
ORDER BY s.created_at, s.subscription_id LIMIT %(limit)s;

-- name: lock_secrets
-- Lock and return a subscription's sealed secrets and the time, for a rotation.
SELECT sealed_secrets, statesvc.clock(), signature, second_signature IS NOT NULL, sealed_headers FROM statesvc.subscription
WHERE subscription_id = %(subscription_id)s AND deleted_at IS NULL FOR NO KEY UPDATE;

-- name: set_secrets
-- Replace the secrets.
UPDATE statesvc.subscription SET sealed_secrets = %(sealed_secrets)b::bytea[], signature = %(key_type)s WHERE subscription_id = %(subscription_id)s;

-- name: owner
-- Return whose a subscription is; that never changes.
SELECT owner FROM statesvc.subscription WHERE subscription_id = %(subscription_id)s AND deleted_at IS NULL;

-- name: lock_payload
-- Lock and return what a subscription sends, which stays so until the transaction ends.
SELECT payload, pii, types FROM statesvc.subscription WHERE subscription_id = %(subscription_id)s AND deleted_at IS NULL FOR NO KEY UPDATE;

-- name: change
-- Change the named columns of a subscription.
UPDATE statesvc.subscription s SET
    -- a login goes nowhere but to the URL that it came with; the same URL as it is shown, without one, changes nothing
    sealed_login = CASE WHEN %(columns)s::jsonb ->> 'url' <> s.url OR %(sealed_login)b::bytea IS NOT NULL
        THEN %(sealed_login)b::bytea ELSE s.sealed_login END,
    -- like the login, headers go nowhere but to the URL that they came with
    sealed_headers = CASE WHEN %(columns)s::jsonb ? 'header_names' THEN %(sealed_headers)b::bytea
        WHEN %(columns)s::jsonb ->> 'url' <> s.url THEN NULL ELSE s.sealed_headers END,
    (header_names, url, second_signature, name, description, carriers, statuses, types, shipments, parcels, payload, pii, give_up_after,
        max_age_seconds, rate_per_second, coalesces) = (
        SELECT CASE WHEN n.url = s.url OR %(columns)s::jsonb ? 'header_names' THEN n.header_names ELSE '{}' END, n.url, n.second_signature, n.name,
            n.description, n.carriers, n.statuses, n.types, n.shipments, n.parcels, n.payload, n.pii, n.give_up_after, n.max_age_seconds,
            n.rate_per_second, n.coalesces
        FROM jsonb_populate_record(s, %(columns)s::jsonb) n)
WHERE s.subscription_id = %(subscription_id)s AND s.deleted_at IS NULL;

-- name: pause
-- Stop sending: notifications collect. Returns whether that is new.
UPDATE statesvc.subscription s SET paused_at = coalesce(o.paused_at, statesvc.clock())
FROM (
    SELECT p.subscription_id, p.paused_at FROM statesvc.subscription p
    WHERE p.subscription_id = %(subscription_id)s AND p.deleted_at IS NULL FOR NO KEY UPDATE
) o
WHERE s.subscription_id = o.subscription_id RETURNING o.paused_at IS NULL;

-- name: resume
-- Send again: ends a pause and a disablement. Returns whether there was one.
UPDATE statesvc.subscription s SET paused_at = NULL, disabled_at = NULL, disabled_why = NULL
FROM (
    SELECT p.subscription_id, p.paused_at, p.disabled_at FROM statesvc.subscription p
    WHERE p.subscription_id = %(subscription_id)s AND p.deleted_at IS NULL FOR NO KEY UPDATE
) o
WHERE s.subscription_id = o.subscription_id RETURNING o.paused_at IS NOT NULL OR o.disabled_at IS NOT NULL;

-- name: add_throttle
-- Add the row that each subscription has for its contracted rate and for the pauses that its receiver asks for.
INSERT INTO statesvc.throttle (subscription_id) VALUES (%(subscription_id)s) ON CONFLICT (subscription_id) DO NOTHING;

-- name: call_again
-- Forget that its receiver asked not to be called for a while.
UPDATE statesvc.throttle SET not_before = '-infinity' WHERE subscription_id = %(subscription_id)s AND not_before > '-infinity';

-- name: begin_anew
-- Forget how its receiver failed: it is judged by what it does from now on.
DELETE FROM statesvc.subscription_failing WHERE subscription_id = %(subscription_id)s;

-- name: delete
-- Delete a subscription and forget its secrets, login and headers: nothing is sent or collected any more; what was sent stays in the log.
-- Return what still waited.
UPDATE statesvc.subscription s SET deleted_at = statesvc.clock(), sealed_secrets = '{}', sealed_login = NULL, sealed_headers = NULL
FROM statesvc.open_notifications(%(subscription_id)s) w
WHERE s.subscription_id = %(subscription_id)s AND s.deleted_at IS NULL
RETURNING w.open, w.open_since, w.open_until;

-- name: forget_tests
-- Forget the tests of a deleted subscription.
DELETE FROM statesvc.test_attempt WHERE subscription_id = %(subscription_id)s;
