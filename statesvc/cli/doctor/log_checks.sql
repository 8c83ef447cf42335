-- name: auditor
-- Return whether a role is a superuser, may act as the log's owner, and may read the log. No row: there is no such role.
SELECT r.rolsuper, pg_has_role(r.oid, c.relowner, 'MEMBER'), has_table_privilege(r.oid, c.oid, 'SELECT')
FROM pg_roles r, pg_class c WHERE r.rolname = %(role)s AND c.oid = to_regclass('statesvc.event');

-- name: auditor_excess
-- Return the privileges of a role that an auditor must not have: to write anywhere, to read keys, secrets or bodies, to run what writes for
-- others.
SELECT c.relname || ' (' || lower(p.privilege) || ')'
FROM pg_class c CROSS JOIN unnest(ARRAY['INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'TRIGGER']) AS p(privilege)
WHERE c.relnamespace = 'statesvc'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm') AND CASE
    WHEN p.privilege IN ('INSERT', 'UPDATE') THEN has_any_column_privilege(%(role)s, c.oid, p.privilege)
    ELSE has_table_privilege(%(role)s, c.oid, p.privilege) END
UNION ALL
SELECT a.attrelid::regclass::text || '.' || a.attname
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
WHERE c.relnamespace = 'statesvc'::regnamespace AND c.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped
    AND (a.attname IN ('sealed_key', 'sealed_seed', 'sealed_secrets', 'key_hash', 'wrapped')
        OR (c.relname ~ '^(body|body_retained|inbox|normalized)(_[0-9]{8})?$' AND a.attname IN ('sealed', 'headers', 'events')))
    AND has_column_privilege(%(role)s, c.oid, a.attnum, 'SELECT')
UNION ALL
SELECT n.nspname || ' (create)' FROM pg_namespace n WHERE n.nspname = 'statesvc' AND has_schema_privilege(%(role)s, n.oid, 'CREATE')
ORDER BY 1;

-- name: guard
-- Return which of the guard's event triggers exist, and whether they fire in every session (A).
SELECT e.evtname, e.evtenabled::text FROM pg_event_trigger e WHERE e.evtname = ANY (%(names)s::text[]);

-- name: seal_state
-- Return what the newest checkpoint covers.
SELECT coalesce(max(c.tree_size), 0) FROM statesvc.checkpoint c;

-- name: owned_log
-- Return whether the role that asks could change the log: it owns its tables or is a superuser.
SELECT pg_has_role(current_user, c.relowner, 'MEMBER') OR (SELECT r.rolsuper FROM pg_roles r WHERE r.rolname = current_user) AS owned
FROM pg_class c WHERE c.oid = to_regclass('statesvc.event');

-- name: mutable_log
-- Return the log tables and partitions that the role that asks may change in spite of everything.
SELECT c.relname
FROM statesvc.partitioned p
JOIN pg_inherits i ON i.inhparent = to_regclass('statesvc.' || p.table_name)
JOIN pg_class c ON c.oid = i.inhrelid
WHERE p.append_only AND (has_table_privilege(c.oid, 'UPDATE') OR has_table_privilege(c.oid, 'DELETE') OR has_table_privilege(c.oid, 'TRUNCATE'))
ORDER BY c.relname LIMIT 5;
