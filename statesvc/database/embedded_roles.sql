-- Makes what is missing of the roles and the database, and sets the passwords that the environment has. psql runs it as superuser at every
-- start of the embedded server. On a server of yours run it once, as a superuser or as any role with CREATEROLE and CREATEDB (docs/managed.md).
-- The service logs in as a role that owns nothing; migrations run as the owner; the auditor reads the log and nothing secret.
\getenv owner_password STATESVC_OWNER_PASSWORD
\getenv service_password STATESVC_SERVICE_PASSWORD
\getenv auditor_password STATESVC_AUDITOR_PASSWORD

SELECT format('CREATE ROLE %I LOGIN', name)
FROM unnest(ARRAY['statesvc_owner', 'statesvc_service', 'statesvc_auditor']) AS name
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name) \gexec
-- without any, a role logs in by other means, such as a provider's tokens
\if :{?owner_password}
ALTER ROLE statesvc_owner PASSWORD :'owner_password';
\endif
\if :{?service_password}
ALTER ROLE statesvc_service PASSWORD :'service_password';
\endif
\if :{?auditor_password}
ALTER ROLE statesvc_auditor PASSWORD :'auditor_password';
\endif
ALTER ROLE statesvc_auditor SET default_transaction_read_only = on;

-- who made a role may administer it, and from PostgreSQL 16 on no more: to give a database away one must be able to become its owner
SELECT format('GRANT statesvc_owner TO %I WITH SET TRUE, INHERIT TRUE', current_user)
WHERE NOT pg_has_role('statesvc_owner', 'SET') \gexec

-- so that status, alerts and doctor see the transactions of other roles: who holds a lock, what keeps dead rows
-- (a master may administer pg_monitor alone, which has it)
SELECT format('GRANT %I TO statesvc_service', name)
FROM unnest(ARRAY['pg_read_all_stats', 'pg_monitor']) AS name
WHERE pg_has_role(name, 'MEMBER WITH ADMIN OPTION') AND NOT pg_has_role('statesvc_service', 'pg_read_all_stats', 'MEMBER')
ORDER BY name DESC LIMIT 1 \gexec
SELECT NOT pg_has_role('statesvc_service', 'pg_read_all_stats', 'MEMBER') AS sees_itself_alone \gset
\if :sees_itself_alone
\warn 'statesvc_service sees only its own sessions: who administers pg_read_all_stats may grant it'
\endif

SELECT 'CREATE DATABASE statesvc OWNER statesvc_owner TEMPLATE template0 ENCODING ''UTF8'''
WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = 'statesvc') \gexec
SET ROLE statesvc_owner;
REVOKE ALL ON DATABASE statesvc FROM PUBLIC;
GRANT CONNECT ON DATABASE statesvc TO statesvc_service, statesvc_auditor;
RESET ROLE;
