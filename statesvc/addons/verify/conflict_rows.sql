-- name: counters
-- Return what the counters of conflicts of a part say of their entries.
SELECT k.carrier_id, k.event_id, encode(k.facts_digest, 'hex'), k.shipment_id::text, k.claimed_shipment_id::text,
    (extract(epoch FROM k.recorded_at - '2000-01-01+00'::timestamptz) * 1000000)::bigint
FROM statesvc.conflict_key k WHERE k.shipment_id BETWEEN %(low)s AND %(high)s;

-- name: conflicts
-- Return the conflicts of a part.
SELECT c.carrier_id, c.event_id, encode(c.facts_digest, 'hex'), c.shipment_id::text, c.claimed_shipment_id::text,
    (extract(epoch FROM c.recorded_at - '2000-01-01+00'::timestamptz) * 1000000)::bigint
FROM statesvc.conflict c WHERE c.shipment_id BETWEEN %(low)s AND %(high)s;
