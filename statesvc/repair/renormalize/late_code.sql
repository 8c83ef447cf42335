-- name: tick
-- Return the database's clock.
SELECT statesvc.clock();

-- name: messages_of_code
-- Return the next messages, in the order of their ids, with a code, from when it was unknown; `text` is any text in place of one. `since`:
-- only of events that were recorded since then and that no correction of ours is about.
SELECT DISTINCT said.message_id FROM (
    SELECT e.message_id, e.recorded_at, e.shipment_id, e.event_id, e.raw_type, e.raw_code FROM statesvc.event e
    WHERE (e.kind = 'unmapped' OR e.by_category) AND e.carrier_id = %(carrier_id)s
        AND e.carrier_code ~>=~ %(carrier_code)s AND e.carrier_code ~<~ (%(carrier_code)s || '0')
    UNION ALL
    SELECT e.message_id, e.recorded_at, e.shipment_id, e.event_id, e.raw_type, e.raw_code FROM statesvc.event e
    WHERE (e.kind = 'unmapped' OR e.by_category) AND e.carrier_id = %(carrier_id)s AND %(carrier_code)s::text IS NULL
) said
WHERE said.message_id > %(after)s
    AND (%(since)s::timestamptz IS NULL OR said.recorded_at >= %(since)s AND NOT EXISTS (
        SELECT FROM statesvc.event c WHERE c.shipment_id = said.shipment_id AND c.kind = 'correction'
            AND c.corrects = said.event_id))
    AND regexp_replace(said.raw_type, '^text-[a-z2-7]{26}$', 'text') IS NOT DISTINCT FROM %(raw_type)s::text
        AND regexp_replace(said.raw_code, '^text-[a-z2-7]{26}$', 'text') IS NOT DISTINCT FROM %(raw_code)s::text
ORDER BY said.message_id LIMIT %(limit)s;

-- name: transaction_id
-- Return the id of the current transaction.
SELECT pg_current_xact_id()::text::bigint;

-- name: older_writers
-- Return whether a transaction that writes and that began before `transaction_id` ended is still under way.
SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint <= %(transaction_id)s::bigint;
