-- name: is_erased
-- Return whether the shipment has no key, for good.
SELECT EXISTS (SELECT FROM statesvc.stream s WHERE s.shipment_id = %(shipment_id)s AND s.erased_at IS NOT NULL);
