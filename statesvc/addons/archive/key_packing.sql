-- name: unpacked
-- Return the months that are gone and whose shipments' keys were not packed since.
SELECT a.month FROM statesvc.log_archive a WHERE a.dropped_at IS NOT NULL AND a.packed_at IS NULL ORDER BY a.month;

-- name: pack_keys
-- Pack what may be packed of the next keys; return the last of them, and how many were packed.
SELECT p.carrier_id, p.event_id, p.packed FROM statesvc.pack_keys(%(carrier_id)s, %(event_id)s, %(limit)s) p;

-- name: note_packed
-- Note that all keys were looked at since these months went.
UPDATE statesvc.log_archive SET packed_at = statesvc.clock() WHERE month = ANY (%(months)s::date[]);
