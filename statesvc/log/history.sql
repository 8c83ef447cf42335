-- name: horizon
-- Return up to which time and which index something of the log is archived, or about to be.
SELECT max(a.ends), max(a.last_index) + 1 FROM statesvc.log_archive a WHERE a.leaving_at IS NOT NULL;

-- name: away
-- Return which of these shipments have months that are archived, or about to be, and are not at hand; an awaited number of which nothing
-- was heard is one where somebody was notified of that.
SELECT s.shipment_id, a.month FROM (
    SELECT t.shipment_id, t.first_recorded_at FROM statesvc.stream t WHERE t.shipment_id = ANY (%(shipment_ids)s::uuid[]) AND t.version > 0
    UNION ALL
    SELECT n.shipment_id, min(n.created_at) FROM statesvc.notification n
    WHERE n.shipment_id = ANY (%(shipment_ids)s::uuid[]) AND n.type = 'shipment.never_heard' GROUP BY n.shipment_id
) s
JOIN statesvc.log_archive a ON a.leaving_at IS NOT NULL AND a.ends > s.first_recorded_at
WHERE NOT EXISTS (SELECT FROM statesvc.log_resident r WHERE r.shipment_id = s.shipment_id AND r.month = a.month);

-- name: away_of_number
-- Return which of all shipments that bear a number have such months.
SELECT s.shipment_id, a.month FROM statesvc.stream s
JOIN statesvc.log_archive a ON a.leaving_at IS NOT NULL AND a.ends > s.first_recorded_at
WHERE s.carrier_id = %(carrier_id)s AND s.number = %(number)s AND s.version > 0
    AND NOT EXISTS (SELECT FROM statesvc.log_resident r WHERE r.shipment_id = s.shipment_id AND r.month = a.month);

-- name: take_in
-- Note that these shipments are at hand from the commit on. While a month is still in the database, they stay there when it goes.
INSERT INTO statesvc.log_resident (shipment_id, month, retained_at, why)
SELECT u.shipment_id, u.month, statesvc.clock(), 'asked'
FROM unnest(%(shipment_ids)s::uuid[], %(months)s::date[]) AS u(shipment_id, month)
ORDER BY u.month, u.shipment_id
ON CONFLICT (shipment_id, month) DO NOTHING
RETURNING shipment_id;

-- name: sealed_at
-- Return when these entries were sealed.
SELECT u.log_index, (SELECT s.sealed_at FROM statesvc.sealed_batch s WHERE s.first_index <= u.log_index ORDER BY s.first_index DESC LIMIT 1)
FROM unnest(%(indexes)s::bigint[]) AS u(log_index);

-- name: restore
-- Bring an entry of one kind back.
INSERT INTO {table} ({columns}) VALUES ({parameters}) ON CONFLICT ({unique}) DO NOTHING;

-- name: fanned_out
-- Return what fan-outs of these shipments made, with what their events say of it.
SELECT f.canonical, e.recorded_at, e.occurred_at, e.occurred_offset_seconds, e.carrier_id, coalesce(e.printed_number, k.number)
FROM statesvc.fanout f
JOIN statesvc.event e ON e.shipment_id = f.shipment_id AND e.version = f.sequence
JOIN statesvc.stream k ON k.shipment_id = f.shipment_id
WHERE f.shipment_id = ANY (%(shipment_ids)s::uuid[]) AND NOT f.replayed;

-- name: restore_notification
-- Bring a notification back.
INSERT INTO statesvc.notification
    (shipment_id, sequence, subscription_id, created_at, occurred_at, webhook_id, type, carrier_id, tracking_number, from_status, to_status,
    occurred_offset_seconds, epoch)
VALUES (%(shipment_id)s::uuid, %(sequence)s, %(subscription_id)s::uuid, %(created_at)s, %(occurred_at)s, %(webhook_id)s, %(type)s, %(carrier_id)s,
    %(tracking_number)s, %(from_status)s, %(to_status)s, %(occurred_offset_seconds)s, nullif(%(epoch)s::int, 1))
ON CONFLICT (shipment_id, sequence, subscription_id) DO NOTHING;
