-- name: all_heads
-- Return the end of every chain.
SELECT shipment_id::text, version, head_hash FROM statesvc.stream WHERE version > 0;

-- name: heads
-- Return the ends of a part's chains.
SELECT shipment_id::text, version, head_hash FROM statesvc.stream WHERE shipment_id BETWEEN %(low)s AND %(high)s AND version > 0;

-- name: events
-- Return the events of a part, each chain in its order.
SELECT shipment_id::text, version, canonical FROM statesvc.event WHERE shipment_id BETWEEN %(low)s AND %(high)s
ORDER BY shipment_id, version, recorded_at;
