-- name: silent_triggers
-- Return the triggers that do not fire in sessions of the service, by table; of foreign keys separately.
SELECT c.oid::regclass::text, t.tgname::text, t.tgisinternal FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
WHERE t.tgenabled IN ('D', 'R') AND c.relnamespace = 'statesvc'::regnamespace ORDER BY t.tgisinternal, c.relname, t.tgname;

-- name: replication_role
-- Return the role in which triggers and foreign keys do not fire, where this session has it, and where that setting comes from.
SELECT s.setting, s.source FROM pg_settings s WHERE s.name = 'session_replication_role' AND s.setting <> 'origin';

-- name: sequences_behind
-- Return the sequences whose next value exists already, with their column, the next value and the highest one.
SELECT b.sequence_name, b.column_name, b.next_value, b.highest FROM statesvc.sequences_behind() b;
