-- name: sealed_order
-- All sealed batches in the order of the tree.
SELECT batch_id, first_index, recorded_from, recorded_to FROM statesvc.sealed_batch ORDER BY first_index;

-- name: late_events
-- The events of these batches, each with where the next version of its shipment stands, if there is one.
SELECT e.shipment_id::text, e.version, u.first_index + e.ordinal, s.first_index + n.ordinal
FROM unnest(%(batch_ids)s::bigint[], %(first_indexes)s::bigint[], %(recorded_froms)s::timestamptz[], %(recorded_tos)s::timestamptz[])
    AS u(batch_id, first_index, recorded_from, recorded_to)
JOIN statesvc.event e ON e.batch_id = u.batch_id AND e.recorded_at BETWEEN u.recorded_from AND u.recorded_to
JOIN statesvc.event n ON n.shipment_id = e.shipment_id AND n.version = e.version + 1 AND n.recorded_at > e.recorded_at
JOIN statesvc.sealed_batch s ON s.batch_id = n.batch_id;
