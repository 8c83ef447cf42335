-- Run by psql as superuser at every start of the embedded server: makes what is missing, sets the passwords.
-- The service logs in as a role that owns nothing; migrations run as the owner; the auditor reads the log and nothing secret.
\getenv owner_password STATESVC_OWNER_PASSWORD
\getenv service_password STATESVC_SERVICE_PASSWORD
\getenv auditor_password STATESVC_AUDITOR_PASSWORD

SELECT format('CREATE ROLE %I LOGIN', name)
FROM unnest(ARRAY['statesvc_owner', 'statesvc_service', 'statesvc_auditor']) AS name
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name) \gexec
ALTER ROLE statesvc_owner PASSWORD :'owner_password';
ALTER ROLE statesvc_service PASSWORD :'service_password';
ALTER ROLE statesvc_auditor PASSWORD :'auditor_password';
-- so that status, alerts and doctor see the transactions of other roles: who holds a lock, what keeps dead rows
GRANT pg_read_all_stats TO statesvc_service;
ALTER ROLE statesvc_auditor SET default_transaction_read_only = on;

SELECT 'CREATE DATABASE statesvc OWNER statesvc_owner'
WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = 'statesvc') \gexec
REVOKE ALL ON DATABASE statesvc FROM PUBLIC;
GRANT CONNECT ON DATABASE statesvc TO statesvc_service, statesvc_auditor;
