-- name: lock
-- Take the lock that lets one notifier at a time compare; false: another does.
SELECT pg_try_advisory_xact_lock(hashtextextended('statesvc.operator_incidents', 0));

-- name: asking
-- Return the live subscriptions that ask for these types, with all types of each.
SELECT s.subscription_id, s.types FROM statesvc.subscription s
WHERE s.types && %(types)s::text[] AND s.deleted_at IS NULL AND s.disabled_at IS NULL ORDER BY s.subscription_id;

-- name: present
-- Return the present incidents: type, target, since when, and a sentence. A carrier stays silent until it pushes again, although
-- the rule compares with the day before. The log counts as stopped until it is well below the bound that it crossed, and a spool as in use
-- until it is empty, so that neither flutters.
SELECT 'operator.subscription_failing', 'subscription ' || f.subscription_id, f.since,
    format('all %%s attempts failed, the last: %%s', f.failures, concat_ws(', status ', f.last_outcome, f.last_status_code))
FROM statesvc.subscription_failing f JOIN statesvc.subscription s ON s.subscription_id = f.subscription_id
WHERE f.warned_at IS NOT NULL AND s.deleted_at IS NULL
UNION ALL
SELECT 'operator.subscription_disabled', 'subscription ' || s.subscription_id, s.disabled_at, coalesce(s.disabled_why, '')
FROM statesvc.subscription s WHERE s.disabled_at IS NOT NULL AND s.deleted_at IS NULL
UNION ALL
SELECT 'operator.carrier_silent', 'carrier ' || c.carrier_id, c.silent_since, 'it pushed plenty at this time yesterday, and nothing since'
FROM statesvc.silent_carriers() c
UNION
SELECT i.type, i.target, i.since, 'it pushed plenty at this time yesterday, and nothing since' FROM statesvc.operator_incident i
WHERE i.type = 'operator.carrier_silent' AND NOT EXISTS (
    SELECT FROM statesvc.ack_count t WHERE 'carrier ' || t.carrier_id = i.target AND t.last_at > i.since)
UNION ALL
SELECT 'operator.unknown_codes', 'carrier ' || d.carrier_id, min(d.created_at), format('open dead letters of codes: %%s', count(*))
FROM statesvc.dead_letter d WHERE d.kind = 'code' AND d.resolved_at IS NULL GROUP BY d.carrier_id
UNION ALL
SELECT 'operator.sealer_stopped', 'log', min(u.recorded_from), 'entries wait to be sealed: feed, stream and proofs stop there'
FROM statesvc.unsealed u HAVING min(u.recorded_from) < statesvc.clock() - make_interval(secs => %(unsealed_seconds)s::float8
    / CASE WHEN EXISTS (SELECT FROM statesvc.operator_incident i WHERE i.type = 'operator.sealer_stopped') THEN 4 ELSE 1 END)
UNION ALL
SELECT 'operator.spool_in_use', 'spool ' || p.name, p.oldest_at, format('it holds %%s acknowledged messages', p.messages)
FROM statesvc.spool p WHERE p.messages > 0 AND (p.oldest_at < statesvc.clock() - make_interval(secs => %(spooled_seconds)s)
    OR EXISTS (SELECT FROM statesvc.operator_incident i WHERE (i.type, i.target) = ('operator.spool_in_use', 'spool ' || p.name)))
UNION ALL
SELECT 'operator.rollout_turned_back', n.target, min(n.created_at), 'the candidate failed too often, or read too much differently'
FROM statesvc.notice n WHERE n.kind = 'rollout.turned_back' AND n.seen_at IS NULL GROUP BY n.target;

-- name: open
-- Return the incidents that were sent and have not recovered.
SELECT i.type, i.target, i.since, i.incident_id, i.subscriptions FROM statesvc.operator_incident i;

-- name: begin
-- Open an incident. Fails if it is open.
INSERT INTO statesvc.operator_incident (type, target, since, incident_id, subscriptions)
VALUES (%(type)s, %(target)s, %(since)s, %(incident_id)s, %(subscriptions)s);

-- name: end
-- Close incidents.
DELETE FROM statesvc.operator_incident i WHERE i.incident_id = ANY (%(incident_ids)s::uuid[]);
