-- name: write
-- Notify the operator.
INSERT INTO statesvc.notice (kind, target, created_at, details)
VALUES (%(kind)s, %(target)s, %(now)s, %(details)s);

-- name: list_notices
-- Return a page of notices, the newest first.
SELECT n.notice_id, n.kind, n.target, n.created_at, n.details, n.seen_at, n.seen_by, n.notified_at
FROM statesvc.notice n
WHERE n.notice_id < %(before)s::bigint AND (NOT %(unseen_only)s::boolean OR n.seen_at IS NULL)
ORDER BY n.notice_id DESC LIMIT %(limit)s;

-- name: mark_seen
-- Say who saw a notice first.
UPDATE statesvc.notice SET seen_at = statesvc.clock(), seen_by = %(actor)s WHERE notice_id = %(notice_id)s AND seen_at IS NULL;

-- name: find
-- Return one notice.
SELECT n.notice_id, n.kind, n.target, n.created_at, n.details, n.seen_at, n.seen_by, n.notified_at
FROM statesvc.notice n WHERE n.notice_id = %(notice_id)s;
