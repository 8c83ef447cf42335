-- name: references_of_number
-- Lock and return what is attached to a number; its row is locked, so that of two changes the second sees the first.
SELECT r.sealed, r.changed_at, r.erased_at FROM statesvc.shipment_references r
WHERE r.carrier_id = %(carrier_id)s AND r.number = %(number)s FOR UPDATE;

-- name: attached
-- Return what is attached to a number, without a lock.
SELECT r.sealed, r.changed_at FROM statesvc.shipment_references r
WHERE r.carrier_id = %(carrier_id)s AND r.number = %(number)s AND r.sealed IS NOT NULL;

-- name: attached_to_numbers
-- Return what is attached to each of these numbers.
SELECT r.carrier_id, r.number, r.sealed
FROM unnest(%(carrier_ids)s::text[], %(numbers)s::text[]) AS n(carrier_id, number)
JOIN statesvc.shipment_references r ON r.number = n.number AND r.carrier_id = n.carrier_id AND r.sealed IS NOT NULL;

-- name: attach
-- Put this in place of what was attached; no row where the number was erased.
INSERT INTO statesvc.shipment_references AS r (carrier_id, number, sealed, digests, changed_at)
VALUES (%(carrier_id)s, %(number)s, %(sealed)b, %(digests)b::bytea[], statesvc.clock())
ON CONFLICT (carrier_id, number) DO UPDATE SET sealed = EXCLUDED.sealed, digests = EXCLUDED.digests, changed_at = EXCLUDED.changed_at
WHERE r.erased_at IS NULL
RETURNING changed_at;

-- name: numbers_of_reference
-- Return the numbers that a value is attached to.
SELECT r.carrier_id, r.number FROM statesvc.shipment_references r
WHERE r.digests @> ARRAY[%(digest)b::bytea] LIMIT %(limit)s;

-- name: awaited_numbers
-- Return those of these numbers that something is attached to, or that are awaited, and of which nothing was said yet.
SELECT n.carrier_id, n.number, greatest(r.changed_at, w.awaited_at, w.observed_at), w.observed_at IS NOT NULL
FROM unnest(%(carrier_ids)s::text[], %(numbers)s::text[]) AS n(carrier_id, number)
LEFT JOIN statesvc.shipment_references r ON r.number = n.number AND r.carrier_id = n.carrier_id AND r.sealed IS NOT NULL
LEFT JOIN statesvc.awaited_number w ON w.number = n.number AND w.carrier_id = n.carrier_id
WHERE (r.number IS NOT NULL OR w.number IS NOT NULL)
    AND NOT EXISTS (SELECT FROM statesvc.shipment s WHERE s.number = n.number AND s.carrier_id = n.carrier_id);

-- name: erase_number
-- Take away what is attached to a number, and leaves a mark for what would come later. Waits for one who attaches just now.
INSERT INTO statesvc.shipment_references AS r (carrier_id, number, sealed, digests, changed_at, erased_at)
VALUES (%(carrier_id)s, %(number)s, NULL, '{}', statesvc.clock(), statesvc.clock())
ON CONFLICT (carrier_id, number) DO UPDATE SET sealed = NULL, digests = '{}', erased_at = statesvc.clock() WHERE r.erased_at IS NULL;

-- name: detach
-- Take away what is attached to a number of which another shipment goes on.
UPDATE statesvc.shipment_references SET sealed = NULL, digests = '{}', changed_at = statesvc.clock()
WHERE carrier_id = %(carrier_id)s AND number = %(number)s AND sealed IS NOT NULL;
