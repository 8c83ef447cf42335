-- name: set
-- Settings of the session, by their names.
SELECT set_config(s.name, s.setting, false) FROM unnest(%(names)b::text[], %(settings)b::text[]) AS s(name, setting);

-- name: set_local
-- The same for the transaction alone.
SELECT set_config(s.name, s.setting, true) FROM unnest(%(names)b::text[], %(settings)b::text[]) AS s(name, setting);
