-- name: raise_codes
-- Open one dead letter for each unknown code. Joining an open one changes nothing, so there is no hot row.
INSERT INTO statesvc.dead_letter (kind, cause, carrier_id, created_at, message_id, received_at, raw_type, raw_code, detail, normalizer, worker)
SELECT 'code', u.cause, u.carrier_id, statesvc.clock(), u.message_id, u.received_at, u.raw_type, u.raw_code, u.detail, u.normalizer, %(worker)s
FROM unnest(%(carrier_ids)b::text[], %(message_ids)b::uuid[], %(received_ats)b::timestamptz[], %(raw_types)b::text[], %(raw_codes)b::text[],
    %(causes)b::text[], %(details)b::text[], %(normalizers)b::text[])
    AS u(carrier_id, message_id, received_at, raw_type, raw_code, cause, detail, normalizer)
ORDER BY u.carrier_id, u.raw_type, u.raw_code
ON CONFLICT (carrier_id, coalesce(raw_type, ''), coalesce(raw_code, ''), detail) WHERE kind = 'code' AND resolved_at IS NULL DO NOTHING;

-- name: raise_rejections
-- Make a dead letter for members of an applied message that are no events.
INSERT INTO statesvc.dead_letter (kind, cause, carrier_id, created_at, message_id, received_at, detail, normalizer, worker)
SELECT 'message', 'rejected_member', u.carrier_id, statesvc.clock(), u.message_id, u.received_at, u.detail, u.normalizer, %(worker)s
FROM unnest(%(carrier_ids)b::text[], %(message_ids)b::uuid[], %(received_ats)b::timestamptz[], %(details)b::text[], %(normalizers)b::text[])
    AS u(carrier_id, message_id, received_at, detail, normalizer)
ORDER BY u.message_id
ON CONFLICT (message_id, cause) WHERE kind = 'message' AND resolved_at IS NULL DO NOTHING;
