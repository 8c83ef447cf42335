-- name: erased
-- Return the shipments whose key is gone.
SELECT s.shipment_id::text FROM statesvc.stream s WHERE s.erased_at IS NOT NULL;

-- name: not_erased
-- Return those of these shipments that have a key.
SELECT s.shipment_id::text FROM statesvc.stream s
WHERE s.shipment_id = ANY (%(shipment_ids)s::uuid[]) AND s.erased_at IS NULL ORDER BY 1;
