-- name: discard
-- Discards open letters, a bounded number, oldest first, waiting for nobody: what another one replays meanwhile is left alone.
UPDATE statesvc.dead_letter d
SET resolved_at = statesvc.clock(), resolution = 'discarded', resolved_by = %(actor)s, why = %(why)s, run_id = %(run_id)s
WHERE d.dead_letter_id IN (
    SELECT o.dead_letter_id FROM statesvc.dead_letter o
    WHERE o.resolved_at IS NULL AND o.dead_letter_id <= %(up_to)s
        AND (%(ids)s::bigint[] IS NULL OR o.dead_letter_id = ANY (%(ids)s))
        AND (%(kind)s::text IS NULL OR o.kind = %(kind)s)
        AND (%(carrier_id)s::text IS NULL OR o.carrier_id = %(carrier_id)s)
        AND (%(cause)s::text IS NULL OR o.cause = %(cause)s)
        AND (%(since)s::timestamptz IS NULL OR o.created_at >= %(since)s)
        AND (%(until)s::timestamptz IS NULL OR o.created_at < %(until)s)
    ORDER BY o.dead_letter_id LIMIT %(limit)s FOR UPDATE SKIP LOCKED)
RETURNING d.dead_letter_id;
