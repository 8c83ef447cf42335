-- name: try_lock
-- Take the lock that lets one rebuild run at a time.
SELECT pg_try_advisory_lock(hashtextextended('statesvc.rebuild', 0));

-- name: unlock
-- Let the next rebuild begin.
SELECT pg_advisory_unlock(hashtextextended('statesvc.rebuild', 0));

-- name: wait_briefly
-- Give up soon what traffic would queue behind, to try it again; no statement takes more than one processor of the server.
SELECT set_config('lock_timeout', '1s', false), set_config('statement_timeout', '0', false),
    set_config('max_parallel_workers_per_gather', '0', false);

-- name: fold_in_bulk
-- Sort a slice in memory, not in files whose writing a commit would wait for. The rows of the spare table become durable with the swap.
SELECT set_config('work_mem', '64MB', false), set_config('synchronous_commit', 'off', false);

-- name: bytes_of_log
-- Return how large the events are, for a guess at their number.
SELECT coalesce(sum(pg_relation_size(t.relid)), 0)::bigint FROM pg_partition_tree('statesvc.event') t;

-- name: watch
-- Note every change of the live table from the commit on; it waits for those that are under way.
CREATE OR REPLACE TRIGGER touched_by_insert AFTER INSERT ON statesvc.shipment
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION statesvc.note_touched();
CREATE OR REPLACE TRIGGER touched_by_update AFTER UPDATE ON statesvc.shipment
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION statesvc.note_touched();

-- name: unwatch
-- End the notes on the live table.
DROP TRIGGER IF EXISTS touched_by_insert ON statesvc.shipment;
DROP TRIGGER IF EXISTS touched_by_update ON statesvc.shipment;

-- name: unwatch_spare
-- End the notes on the table that was live.
DROP TRIGGER IF EXISTS touched_by_insert ON statesvc.shipment_spare;
DROP TRIGGER IF EXISTS touched_by_update ON statesvc.shipment_spare;

-- name: empty
-- Forget the spare table, with it the way back from an earlier swap, and the notes so far.
TRUNCATE statesvc.shipment_spare, statesvc.shipment_touched;

-- name: no_way_back
-- Note that there is nothing to roll back to.
DELETE FROM statesvc.rebuild WHERE projection = 'shipment';

-- name: slice_histories
-- Return the events and observations of a slice of the key space, shipment by shipment, oldest first.
SELECT x.shipment_id, x.version, x.canonical FROM (
    SELECT e.shipment_id, e.version, e.canonical FROM statesvc.event e WHERE e.shipment_id BETWEEN %(first)s AND %(last)s
    UNION ALL
    SELECT v.shipment_id, v.version, v.canonical FROM statesvc.observation v
    WHERE v.version > 0 AND v.shipment_id BETWEEN %(first)s AND %(last)s
) x ORDER BY x.shipment_id, x.version;

-- name: slice_rows
-- Return the live rows of a slice of the key space.
SELECT shipment_id, version, recorded_at, first_recorded_at, last_event_at, status_since, delivered_at, attempts, terminal, carrier_id,
    number, tracking_number, discriminator, status, reason, flags, estimated_delivery, signed_by_event_id, promised_until, lane, service, due_at, state
FROM statesvc.shipment WHERE shipment_id BETWEEN %(first)s AND %(last)s ORDER BY shipment_id;

-- name: take_notes
-- Take some notes away; who changes one of these shipments later leaves another.
WITH taken AS (
    DELETE FROM statesvc.shipment_touched WHERE ctid = ANY (ARRAY(SELECT t.ctid FROM statesvc.shipment_touched t LIMIT %(limit)s))
    RETURNING shipment_id
)
SELECT DISTINCT shipment_id FROM taken;

-- name: histories
-- Return the events and observations of these shipments, oldest first. Read after their notes were taken, so that it sees at least what
-- they are about.
SELECT x.shipment_id, x.canonical FROM (
    SELECT e.shipment_id, e.version, e.canonical FROM statesvc.event e WHERE e.shipment_id = ANY (%(shipment_ids)b::uuid[])
    UNION ALL
    SELECT v.shipment_id, v.version, v.canonical FROM statesvc.observation v WHERE v.shipment_id = ANY (%(shipment_ids)b::uuid[])
) x ORDER BY x.shipment_id, x.version;

-- name: remove
-- Make room for rows that are folded again.
DELETE FROM statesvc.shipment_spare WHERE shipment_id = ANY (%(shipment_ids)b::uuid[]);

-- name: analyze
-- Analyze the spare table, so that the first queries after the swap are planned well.
ANALYZE statesvc.shipment_spare;

-- name: lock_live
-- Lock the live table against readers and writers until the end of the transaction.
LOCK TABLE statesvc.shipment IN ACCESS EXCLUSIVE MODE;

-- name: swap
-- Make the spare table the live one, and the other way around.
ALTER TABLE statesvc.shipment RENAME TO shipment_swapping;
ALTER TABLE statesvc.shipment_spare RENAME TO shipment;
ALTER TABLE statesvc.shipment_swapping RENAME TO shipment_spare;

-- name: note_swap
-- Note that there is a way back from here on.
INSERT INTO statesvc.rebuild (projection, swapped_at, swapped_by, events) VALUES ('shipment', statesvc.clock(), %(actor)s, %(events)s)
ON CONFLICT (projection) DO UPDATE SET swapped_at = excluded.swapped_at, swapped_by = excluded.swapped_by, events = excluded.events;

-- name: last_swap
-- Return when and by whom the projection was last swapped, while the old one is retained.
SELECT swapped_at, swapped_by FROM statesvc.rebuild WHERE projection = 'shipment';
