-- name: read_states
-- Return the fold's accumulators of these shipments, as far as they exist.
SELECT shipment_id, state FROM statesvc.shipment WHERE shipment_id = ANY (%(shipment_ids)b::uuid[]);

-- part: rows
(shipment_id, version, recorded_at, first_recorded_at, last_event_at, status_since, delivered_at, attempts, terminal, carrier_id, number,
     tracking_number, discriminator, status, reason, flags, estimated_delivery, signed_by_event_id, promised_until, lane, service, due_at, state)
SELECT u.shipment_id, u.version, u.recorded_at, u.first_recorded_at, u.last_event_at, u.status_since, u.delivered_at, u.attempts, u.terminal,
    u.carrier_id, u.number, u.tracking_number, u.discriminator, u.status, u.reason,
    CASE WHEN u.flags = '' THEN '{}' ELSE string_to_array(u.flags, ',') END, u.estimated_delivery, u.signed_by_event_id, u.promised_until, u.lane, u.service, u.due_at, u.state
FROM unnest(%(shipment_ids)b::uuid[], %(versions)b::int[], %(recorded_ats)b::timestamptz[], %(first_recorded_ats)b::timestamptz[],
    %(last_event_ats)b::timestamptz[], %(status_sinces)b::timestamptz[], %(delivered_ats)b::timestamptz[], %(attempts)b::int[],
    %(terminals)b::bool[], %(carrier_ids)b::text[], %(numbers)b::text[], %(tracking_numbers)b::text[], %(discriminators)b::text[],
    %(statuses)b::text[], %(reasons)b::text[], %(flags)b::text[], %(estimated_deliveries)b::text[], %(signed_by_event_ids)b::text[],
    %(promised_untils)b::timestamptz[], %(lanes)b::text[], %(services)b::text[], %(due_ats)b::timestamptz[], %(states)b::bytea[])
    AS u(shipment_id, version, recorded_at, first_recorded_at, last_event_at, status_since, delivered_at, attempts, terminal, carrier_id,
        number, tracking_number, discriminator, status, reason, flags, estimated_delivery, signed_by_event_id, promised_until, lane, service, due_at, state)

-- name: save_shipments
-- Write the rows of shipments as the log has them now. The streams of these shipments are locked by the append. What an update leaves out
-- is the same in all events of a shipment (what its id is made of), or is that of the first.
INSERT INTO statesvc.shipment AS s {rows}
ON CONFLICT (shipment_id) DO UPDATE SET
    version = excluded.version, recorded_at = excluded.recorded_at, last_event_at = excluded.last_event_at,
    status_since = excluded.status_since, delivered_at = excluded.delivered_at, attempts = excluded.attempts, terminal = excluded.terminal,
    tracking_number = excluded.tracking_number, status = excluded.status, reason = excluded.reason, flags = excluded.flags, estimated_delivery = excluded.estimated_delivery,
    signed_by_event_id = excluded.signed_by_event_id,
    promised_until = excluded.promised_until, lane = excluded.lane, service = excluded.service, due_at = excluded.due_at, state = excluded.state;

-- name: fill_spare
-- Add rows to the spare table of a rebuild.
INSERT INTO statesvc.shipment_spare {rows};
