-- The role of another fleet's workers: it claims messages and hands over what they read, and sees nothing of log, shipments and keys.
GRANT CONNECT ON DATABASE {database} TO {role};
GRANT USAGE ON SCHEMA statesvc TO {role};
GRANT SELECT ON statesvc.inbox, statesvc.body, statesvc.body_retained, statesvc.lane, statesvc.carrier_quota, statesvc.rollout, statesvc.normalized TO {role};
GRANT UPDATE ON statesvc.inbox, statesvc.lane TO {role};
GRANT DELETE ON statesvc.inbox TO {role};
GRANT INSERT ON statesvc.normalized, statesvc.dead_letter, statesvc.message_attempt TO {role};
