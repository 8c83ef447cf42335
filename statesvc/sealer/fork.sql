-- name: limit_waits
-- Limit how long a fork waits for those who write, and how long it may take.
SELECT set_config('lock_timeout', '20s', true), set_config('statement_timeout', '10min', true), set_config('TimeZone', 'UTC', true);

-- name: close_to_writers
-- Wait for the transactions that write entries, and keep others out: each has read its epoch, and holds this table until it ends.
LOCK TABLE statesvc.log_epoch IN ACCESS EXCLUSIVE MODE;

-- name: start_epoch
-- Begin the next epoch with this index.
INSERT INTO statesvc.log_epoch (epoch, begins, started_at) VALUES (%(epoch)s, %(begins)s, %(started_at)s);

-- name: keep_lost_key
-- Store the public half of a key that the backup does not have; nobody signs with it any more.
INSERT INTO statesvc.signing_key (key_id, origin, public_key, created_at, retired_at)
VALUES (%(key_id)s, %(origin)s, %(public_key)s, statesvc.clock(), statesvc.clock());

-- name: begin_sequences_anew
-- Send in the new epoch what was recorded since the restore and never tried: a sequence that a subscriber knows may stand for something
-- else in it. What is older may have been sent before the restore, though this database knows of no try: its webhook-id bears one body
-- alone. The replayed log ends with the last transaction that the restore brought back; a server that was restarted since has forgotten
-- that.
UPDATE statesvc.notification n SET epoch = %(epoch)s FROM statesvc.outbox o
WHERE o.attempts = 0 AND o.earlier_attempts = 0 AND n.shipment_id = o.shipment_id AND n.sequence = o.sequence AND n.subscription_id = o.subscription_id
    AND n.created_at > least(
        pg_last_xact_replay_timestamp(), pg_postmaster_start_time(), (SELECT r.since FROM statesvc.sealing_refusal r));
