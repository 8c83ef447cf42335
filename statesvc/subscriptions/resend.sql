-- name: make_due
-- Make due what waits of a shipment for a subscription, except what is under way: the one that is asked for, and what waits behind it.
UPDATE statesvc.outbox o SET available_at = statesvc.clock()
WHERE o.subscription_id = %(subscription_id)s AND o.shipment_id = %(shipment_id)s AND o.token IS NULL AND o.available_at > statesvc.clock();
