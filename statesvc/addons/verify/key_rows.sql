-- name: keys
-- Return the rows of events themselves, of a part.
SELECT carrier_id, event_id, shipment_id::text, facts_digest FROM statesvc.event_key
WHERE shipment_id BETWEEN %(low)s AND %(high)s AND alias_of IS NULL;

-- name: packed
-- Return the sets of the shipments of a part whose keys were packed.
SELECT shipment_id::text, carrier_id, packed_keys FROM statesvc.stream
WHERE shipment_id BETWEEN %(low)s AND %(high)s AND packed_keys IS NOT NULL;

-- name: events
-- Return the events of a part.
SELECT shipment_id::text, version, canonical FROM statesvc.event WHERE shipment_id BETWEEN %(low)s AND %(high)s;

-- name: key
-- Return what stands under an id.
SELECT shipment_id::text, alias_of FROM statesvc.event_key WHERE carrier_id = %(carrier_id)s AND event_id = %(event_id)s;

-- name: unexpected_aliases
-- Return aliases without the row of the event that they stand for, or with other values than it has. That row may have been packed.
SELECT a.carrier_id, a.event_id, a.alias_of, k.event_id IS NOT NULL
FROM statesvc.event_key a
LEFT JOIN statesvc.event_key k ON k.carrier_id = a.carrier_id AND k.event_id = a.alias_of AND k.alias_of IS NULL
WHERE a.alias_of IS NOT NULL
    AND NOT EXISTS (SELECT FROM statesvc.stream s WHERE k.event_id IS NULL AND s.shipment_id = a.shipment_id
        AND statesvc.holds_key(s.packed_keys, a.alias_of))
    AND (k.event_id IS NULL OR (k.shipment_id, k.facts_digest, k.attribute_digests) <> (a.shipment_id, a.facts_digest, a.attribute_digests))
LIMIT %(most)s;

-- name: missing_aliases
-- Return those of these ids that have no row.
SELECT u.carrier_id, u.event_id FROM unnest(%(carrier_ids)s::text[], %(event_ids)s::text[]) AS u(carrier_id, event_id)
WHERE NOT EXISTS (SELECT FROM statesvc.event_key k WHERE k.carrier_id = u.carrier_id AND k.event_id = u.event_id);

-- name: counters
-- Return what the counters of conflicts of a part say of their entries.
SELECT k.shipment_id::text, k.claimed_shipment_id::text,
    (extract(epoch FROM k.recorded_at - '2000-01-01+00'::timestamptz) * 1000000)::bigint, k.carrier_id, k.event_id,
    encode(k.facts_digest, 'hex')
FROM statesvc.conflict_key k WHERE k.shipment_id BETWEEN %(low)s AND %(high)s;

-- name: conflicts
-- Return the conflicts of a part.
SELECT c.shipment_id::text, c.claimed_shipment_id::text,
    (extract(epoch FROM c.recorded_at - '2000-01-01+00'::timestamptz) * 1000000)::bigint, c.carrier_id, c.event_id,
    encode(c.facts_digest, 'hex')
FROM statesvc.conflict c WHERE c.shipment_id BETWEEN %(low)s AND %(high)s;
