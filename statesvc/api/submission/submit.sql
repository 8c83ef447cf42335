-- name: begin
-- Return the time of receipt, and which of these carriers are on hold.
SELECT statesvc.clock(), ARRAY(SELECT c FROM unnest(%(carrier_ids)b::text[]) AS c WHERE statesvc.held(c));

-- name: clock
-- Return the service's time.
SELECT statesvc.clock();

-- name: store_applied
-- Keep a message that was applied in the request itself: body and verdict at once, no wait in the inbox.
WITH stored AS (
    INSERT INTO statesvc.body (message_id, received_at, carrier_id, commitment, headers, sealed)
    VALUES (%(message_id)s, %(received_at)s, %(carrier_id)s, %(commitment)b, '{}', %(sealed)b)
)
INSERT INTO statesvc.message
    (message_id, received_at, settled_at, attempts, events, carrier_id, outcome, normalizer, worker, shipments, sealed_key)
VALUES (%(message_id)s, %(received_at)s, statesvc.clock(), 1, %(events)s, %(carrier_id)s,
    CASE WHEN %(empty)s THEN 'empty' ELSE 'applied' END, %(normalizer)s, %(worker)s, %(shipments)b::uuid[], %(sealed_key)b);
