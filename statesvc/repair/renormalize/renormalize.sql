-- name: these_messages
-- Return these messages, without a key to read them where they are of another carrier.
SELECT m.message_id, m.received_at, m.shipments, CASE WHEN m.carrier_id = %(carrier_id)s THEN m.sealed_key END
FROM statesvc.message m
WHERE m.message_id = ANY (%(message_ids)s::uuid[])
ORDER BY m.message_id;

-- name: lock_shipments
-- Lock the heads of those shipments that exist, in their order; as the append does it, so that neither waits for the other in a ring.
SELECT shipment_id FROM statesvc.stream WHERE shipment_id = ANY (%(shipment_ids)b::uuid[]) ORDER BY shipment_id FOR NO KEY UPDATE;

-- name: histories
-- Return all events of these shipments, oldest first.
SELECT e.shipment_id, e.canonical FROM statesvc.event e
WHERE e.shipment_id = ANY (%(shipment_ids)b::uuid[]) ORDER BY e.shipment_id, e.version;

-- name: name_shipments
-- Wrap the body of a message under the keys of all shipments that it names now.
SELECT statesvc.name_shipments(%(message_id)s, %(received_at)s, %(shipments)b::uuid[], %(sealed_key)b);
