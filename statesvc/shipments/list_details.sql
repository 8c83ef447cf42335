-- name: last_scans
-- Return the last scans of these shipments, each by its event id: mostly the event that came last, so the index is read backwards. A
-- shipment was recorded from `sinces` until `untils`, all of them from `since` until `until`: other partitions are not looked at. None: it
-- is archived.
SELECT u.shipment_id, e.canonical
FROM unnest(%(shipment_ids)s::uuid[], %(event_ids)s::text[], %(sinces)s::timestamptz[], %(untils)s::timestamptz[])
    AS u(shipment_id, event_id, since, until)
CROSS JOIN LATERAL (
    SELECT o.canonical FROM statesvc.event o
    WHERE o.shipment_id = u.shipment_id AND o.recorded_at BETWEEN u.since AND u.until AND o.event_id = u.event_id
        AND o.recorded_at BETWEEN %(since)s::timestamptz AND %(until)s::timestamptz
    ORDER BY o.version DESC LIMIT 1
) e;
