-- name: insert_fanouts
-- Append fan-outs, after `before` other entries of the batch. Arrays of several lengths come as text.
INSERT INTO statesvc.fanout (shipment_id, sequence, recorded_at, batch_id, ordinal, subscriptions, replayed, canonical)
SELECT u.shipment_id, u.sequence, u.recorded_at, %(batch_id)s, %(before)s + u.ordinal - 1, string_to_array(u.subscriptions, ' ')::uuid[],
    u.replayed, u.canonical
FROM unnest(%(shipment_ids)b::uuid[], %(sequences)b::int[], %(recorded_ats)b::timestamptz[], %(subscriptions)b::text[], %(replayed)b::boolean[],
    %(canonicals)b::bytea[])
    WITH ORDINALITY AS u(shipment_id, sequence, recorded_at, subscriptions, replayed, canonical, ordinal);
