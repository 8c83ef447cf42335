-- name: make_due
-- Make due what waits of a shipment for a subscription, except what is under way: the one that is asked for, and what waits behind it.
UPDATE statesvc.outbox o SET available_at = statesvc.clock()
WHERE o.subscription_id = %(subscription_id)s AND o.shipment_id = %(shipment_id)s AND o.token IS NULL AND o.available_at > statesvc.clock();

-- name: under_way
-- Find a notification that a notifier is sending, or has sent and not settled.
SELECT FROM statesvc.outbox o
WHERE o.subscription_id = %(subscription_id)s AND o.shipment_id = %(shipment_id)s AND o.sequence = %(sequence)s
    AND o.token IS NOT NULL AND o.available_at > statesvc.clock();
