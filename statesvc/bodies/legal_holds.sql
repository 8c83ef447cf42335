-- name: known_number
-- Return whether anything was ever said about this number.
SELECT EXISTS (SELECT FROM statesvc.stream s WHERE s.carrier_id = %(carrier_id)s AND s.number = %(number)s);

-- name: place
-- Place a hold; none where one stands already.
INSERT INTO statesvc.legal_hold (carrier_id, number, tracking_number, placed_at, placed_by, why)
VALUES (%(carrier_id)s, %(number)s, %(tracking_number)s, statesvc.clock(), %(actor)s, %(why)s)
ON CONFLICT (carrier_id, number) WHERE released_at IS NULL DO NOTHING
RETURNING legal_hold_id, carrier_id, number, tracking_number, placed_at, placed_by, why, released_at, released_by, released_why;

-- name: release
-- End the hold that stands.
UPDATE statesvc.legal_hold SET released_at = statesvc.clock(), released_by = %(actor)s, released_why = %(why)s
WHERE carrier_id = %(carrier_id)s AND number = %(number)s AND released_at IS NULL
RETURNING legal_hold_id, carrier_id, number, tracking_number, placed_at, placed_by, why, released_at, released_by, released_why;

-- name: list_holds
-- Return a page of holds, the newest first.
SELECT h.legal_hold_id, h.carrier_id, h.number, h.tracking_number, h.placed_at, h.placed_by, h.why, h.released_at, h.released_by,
    h.released_why
FROM statesvc.legal_hold h
WHERE (%(carrier_id)s::text IS NULL OR h.carrier_id = %(carrier_id)s) AND (%(number)s::text IS NULL OR h.number = %(number)s)
    AND (%(all)s OR h.released_at IS NULL)
    AND h.legal_hold_id < %(before)s::bigint
ORDER BY h.legal_hold_id DESC LIMIT %(limit)s;
