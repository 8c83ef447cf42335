-- name: observations_of_shipment
-- Return what was observed of one shipment, recorded after one instant and up to another, with its place in the log; in order.
SELECT v.recorded_at, v.canonical, v.batch_id, v.ordinal, s.sealed_at,
    s.first_index + v.ordinal AS log_index
FROM statesvc.observation v
LEFT JOIN statesvc.sealed_batch s ON s.batch_id = v.batch_id
WHERE v.shipment_id = %(shipment_id)s AND v.recorded_at >= %(since)s AND v.recorded_at < %(month_end)s
    AND v.recorded_at > %(recorded_after)s AND v.recorded_at <= %(recorded_upto)s
ORDER BY v.batch_id, v.ordinal;
