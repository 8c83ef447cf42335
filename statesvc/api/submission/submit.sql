-- name: begin
-- The time of receipt, and which of these carriers are on hold.
SELECT statesvc.clock(), ARRAY(SELECT c FROM unnest(%(carrier_ids)b::text[]) AS c WHERE statesvc.held(c));
