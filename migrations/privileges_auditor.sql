-- What an auditor may read, where there is such a role; run after every migration. All that `statesvc verify` reads and what it means,
-- and no key: neither the service's, nor a shipment's, nor the log's, nor the hashes of API keys and the secrets of subscriptions.
-- Bodies of messages are left out too. Nothing may be written. Whatever else was granted is taken away.
REVOKE ALL ON ALL TABLES IN SCHEMA statesvc FROM {auditor_role};
REVOKE ALL ON ALL SEQUENCES IN SCHEMA statesvc FROM {auditor_role};
GRANT USAGE ON SCHEMA statesvc TO {auditor_role};
GRANT SELECT ON
    statesvc.batch, statesvc.event, statesvc.event_key, statesvc.conflict, statesvc.conflict_key, statesvc.transition, statesvc.fanout,
    statesvc.attempt, statesvc.observation, statesvc.action, statesvc.notification, statesvc.notification_gap, statesvc.outbox, statesvc.log_epoch, statesvc.unsealed, statesvc.sealed_batch, statesvc.subtree, statesvc.checkpoint, statesvc.checkpoint_stamp, statesvc.second_signature, statesvc.cosigned_head,
    statesvc.shipment, statesvc.legal_hold, statesvc.code_mapping, statesvc.body_archive, statesvc.log_archive,
    statesvc.log_resident,
    statesvc.schema_migrations, statesvc.schema_functions, statesvc.partitioned, statesvc.zone_release
    TO {auditor_role};
GRANT SELECT ON SEQUENCE statesvc.batch_id_seq TO {auditor_role};
GRANT SELECT (shipment_id, carrier_id, number, discriminator, version, head_hash, recorded_at, first_recorded_at, erased_at, entries_until, packed_keys)
    ON statesvc.stream TO {auditor_role};
GRANT SELECT (key_id, origin, public_key, cosigner, created_at, retired_at) ON statesvc.signing_key TO {auditor_role};
GRANT SELECT (subscription_id, created_at, created_by, carriers, statuses, types, payload, paused_at, disabled_at, disabled_why, deleted_at)
    ON statesvc.subscription TO {auditor_role};
GRANT SELECT (key_id, name, scopes, created_at, created_by, revoked_at, expires_at, last_used_at) ON statesvc.api_key TO {auditor_role};
