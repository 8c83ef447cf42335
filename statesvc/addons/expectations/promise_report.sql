-- name: promise_counts
-- Count the shipments that were promised for a range of days by how the promise ended. The day is that whose midnight `promised_until` is:
-- in UTC it ends between 10:30 of that day and of the next wherever the offset is from -10:00 to +13:30 (beyond, it may be the day next to
-- it). What is not asked for is NULL, so that there are no more groups than that..
SELECT x.carrier_id, x.service, x.lane, x.month, x.outcome, x.delay_days, count(*) AS shipments
FROM (
    SELECT CASE WHEN %(by_carrier)s THEN s.carrier_id END AS carrier_id, CASE WHEN %(by_service)s THEN s.service END AS service,
        CASE WHEN %(by_lane)s THEN s.lane END AS lane,
        CASE WHEN %(by_month)s THEN date_trunc('month', s.promised_until AT TIME ZONE 'UTC' - interval '10 hours 30 minutes')::date END AS month,
        CASE WHEN s.delivered_at < s.promised_until THEN 'on_time'
            WHEN s.delivered_at IS NOT NULL THEN 'late'
            WHEN s.status = 'delivered' THEN 'delivered_without_time'
            WHEN s.status IN ('returning', 'returned', 'lost', 'destroyed') THEN 'not_delivered'
            WHEN s.promised_until <= %(now)s::timestamptz THEN 'overdue'
            ELSE 'open' END AS outcome,
        floor(date_part('epoch', s.delivered_at - s.promised_until) / 86400)::int + 1 AS delay_days
    FROM statesvc.shipment s
    WHERE s.promised_until >= %(since)s::date::timestamp AT TIME ZONE 'UTC' + interval '10 hours 30 minutes'
        AND s.promised_until < %(until)s::date::timestamp AT TIME ZONE 'UTC' + interval '10 hours 30 minutes'
        AND s.status <> 'cancelled' AND (%(carrier_id)s::text IS NULL OR s.carrier_id = %(carrier_id)s)
        AND (%(service)s::text IS NULL OR lower(s.service) = lower(%(service)s)) AND (%(lane)s::text IS NULL OR s.lane = %(lane)s)
) x
GROUP BY x.carrier_id, x.service, x.lane, x.month, x.outcome, x.delay_days;

-- name: late_parcels
-- Return the shipments that were promised for a range of days and not delivered by the end of theirs, the earliest promise first.
SELECT s.shipment_id, s.carrier_id, s.tracking_number, s.discriminator, s.service, s.lane, s.status,
    (s.promised_until AT TIME ZONE 'UTC' - interval '10 hours 30 minutes')::date AS promised_for, s.promised_until, s.delivered_at,
    floor(extract(epoch FROM coalesce(s.delivered_at, %(now)s::timestamptz) - s.promised_until) / 86400)::int + 1 AS days_late
FROM statesvc.shipment s
WHERE s.promised_until >= %(since)s::date::timestamp AT TIME ZONE 'UTC' + interval '10 hours 30 minutes'
    AND s.promised_until < %(until)s::date::timestamp AT TIME ZONE 'UTC' + interval '10 hours 30 minutes'
    AND s.status <> 'cancelled' AND (%(carrier_id)s::text IS NULL OR s.carrier_id = %(carrier_id)s)
    AND (%(service)s::text IS NULL OR lower(s.service) = lower(%(service)s)) AND (%(lane)s::text IS NULL OR s.lane = %(lane)s)
    AND s.promised_until <= coalesce(s.delivered_at, %(now)s::timestamptz) AND (s.delivered_at IS NOT NULL OR s.status <> 'delivered')
    AND (s.promised_until, s.shipment_id) > (%(after_promised_until)s::timestamptz, %(after_shipment_id)s::uuid)
ORDER BY s.promised_until, s.shipment_id LIMIT %(limit)s;

-- name: now
-- Return the service's clock.
SELECT statesvc.clock();
