-- name: rules_in_effect
-- Return all rules, as an append reads them: `*` sorts before the carriers, each before its services.
SELECT jsonb_agg(jsonb_build_array(x.carrier_id, x.service, x.revision, x.rules) ORDER BY x.carrier_id COLLATE "C", x.service COLLATE "C")::text FROM statesvc.expectation_rules x;
