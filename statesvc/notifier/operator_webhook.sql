-- name: claim
-- Claim for a while the notices whose webhook is due; those that are too old are not sent any more.
UPDATE statesvc.notice n SET sends = n.sends + 1, send_at = statesvc.clock() + make_interval(secs => %(lease_seconds)s::float8)
WHERE n.notice_id = ANY (ARRAY(
    SELECT q.notice_id FROM statesvc.notice q
    WHERE q.send_at <= statesvc.clock() AND q.created_at > statesvc.clock() - make_interval(secs => %(age_seconds)s::float8)
    ORDER BY q.send_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED))
RETURNING n.notice_id, n.kind, n.target, n.created_at, n.details, n.sends, statesvc.clock();

-- name: settle
-- Note that the operator has a notice, or gets it again after the delay; no delay: never again.
UPDATE statesvc.notice SET notified_at = CASE WHEN %(accepted)s::boolean THEN statesvc.clock() END,
    send_at = CASE WHEN NOT %(accepted)s::boolean THEN statesvc.clock() + make_interval(secs => %(delay)s::float8) END
WHERE notice_id = %(notice_id)s AND notified_at IS NULL;
