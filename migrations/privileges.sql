-- What the service's role may do; run after every migration. The log takes INSERT and SELECT, nothing else.
GRANT USAGE ON SCHEMA statesvc TO {service_role};
GRANT SELECT ON ALL TABLES IN SCHEMA statesvc TO {service_role};
GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA statesvc TO {service_role};
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA statesvc TO {service_role};
GRANT INSERT ON
    statesvc.batch, statesvc.event, statesvc.event_key, statesvc.conflict, statesvc.transition, statesvc.fanout, statesvc.attempt,
    statesvc.observation, statesvc.action
    TO {service_role};
REVOKE UPDATE, DELETE, TRUNCATE ON
    statesvc.batch, statesvc.event, statesvc.event_key, statesvc.conflict, statesvc.transition, statesvc.fanout, statesvc.attempt,
    statesvc.observation, statesvc.action
    FROM {service_role};
GRANT INSERT, UPDATE, DELETE ON
    statesvc.inbox, statesvc.normalized, statesvc.receipt, statesvc.lane, statesvc.outbox, statesvc.worker
    TO {service_role};
GRANT INSERT, UPDATE ON
    statesvc.stream, statesvc.conflict_key, statesvc.rollout, statesvc.dead_letter, statesvc.shipment, statesvc.shipment_spare,
    statesvc.subscription, statesvc.api_key
    TO {service_role};
GRANT INSERT ON statesvc.body, statesvc.message, statesvc.notification, statesvc.service_key TO {service_role};
GRANT INSERT ON statesvc.code_mapping TO {service_role};
REVOKE UPDATE, DELETE, TRUNCATE ON statesvc.code_mapping FROM {service_role};
GRANT INSERT, DELETE ON statesvc.mapped_text TO {service_role};
GRANT INSERT, UPDATE, DELETE ON
    statesvc.rollout_batch, statesvc.rollout_count, statesvc.rollout_diff, statesvc.reader, statesvc.trial
    TO {service_role};
GRANT INSERT, UPDATE ON statesvc.second_signature, statesvc.cosigned_head, statesvc.carrier_quota, statesvc.zone_release TO {service_role};
GRANT INSERT, DELETE ON statesvc.message_attempt TO {service_role};
GRANT INSERT, UPDATE ON statesvc.body_archive, statesvc.legal_hold TO {service_role};
GRANT INSERT, DELETE ON statesvc.body_retained TO {service_role};
GRANT INSERT, DELETE ON statesvc.unsealed TO {service_role};
GRANT INSERT, UPDATE, DELETE ON statesvc.personal_reading, statesvc.console_session TO {service_role};
GRANT INSERT ON statesvc.sealed_batch, statesvc.subtree, statesvc.checkpoint TO {service_role};
REVOKE UPDATE, DELETE, TRUNCATE ON statesvc.sealed_batch, statesvc.subtree, statesvc.checkpoint FROM {service_role};
GRANT INSERT, UPDATE (cosigner, sealed_seed, retired_at) ON statesvc.signing_key TO {service_role};
GRANT INSERT, UPDATE, DELETE ON statesvc.throttle, statesvc.limiter_state TO {service_role};
GRANT INSERT ON statesvc.notification_gap TO {service_role};
GRANT INSERT, DELETE ON statesvc.open_attempt, statesvc.test_attempt TO {service_role};
GRANT INSERT, UPDATE, DELETE ON statesvc.subscription_failing TO {service_role};
GRANT INSERT, UPDATE, DELETE ON statesvc.ack_count, statesvc.objective_minute, statesvc.reconciled TO {service_role};
GRANT INSERT, UPDATE, DELETE ON statesvc.notice, statesvc.spool TO {service_role};
GRANT INSERT ON statesvc.message_alias TO {service_role};
GRANT INSERT, DELETE ON statesvc.operator_incident TO {service_role};
GRANT DELETE ON statesvc.dead_letter TO {service_role};
GRANT INSERT, UPDATE, DELETE ON statesvc.sealing_refusal TO {service_role};
GRANT INSERT ON statesvc.checkpoint_stamp, statesvc.root_key TO {service_role};
REVOKE UPDATE, DELETE, TRUNCATE ON statesvc.checkpoint_stamp, statesvc.root_key FROM {service_role};
GRANT INSERT, UPDATE ON statesvc.log_archive TO {service_role};
GRANT INSERT, UPDATE, DELETE ON statesvc.archive_refusal TO {service_role};
GRANT INSERT ON statesvc.log_resident TO {service_role};
GRANT INSERT, UPDATE ON statesvc.expectation_rules, statesvc.shipment_references TO {service_role};
GRANT INSERT, UPDATE, DELETE ON statesvc.awaited_number TO {service_role};
-- the transactions of other roles, for alerts and doctor; where the owner may not give it, doctor says so
DO $$
BEGIN
    IF pg_has_role('pg_read_all_stats', 'MEMBER WITH ADMIN OPTION') THEN
        GRANT pg_read_all_stats TO {service_role};
    END IF;
END $$;
