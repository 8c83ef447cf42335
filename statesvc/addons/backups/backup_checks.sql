-- name: archiving
-- Return whether finished files of the write-ahead log are archived, and how that goes: the last that was and the last that failed, with
-- seconds since; bytes that are in no archived file yet; after how many seconds an open file is archived too; whether anyone receives the
-- log by streaming.
SELECT current_setting('archive_mode') <> 'off'
        AND (current_setting('archive_command') NOT IN ('', '(disabled)') OR current_setting('archive_library') <> ''),
    a.last_archived_wal, extract(epoch FROM clock_timestamp() - a.last_archived_time)::float8,
    a.last_failed_wal, extract(epoch FROM clock_timestamp() - a.last_failed_time)::float8,
    CASE WHEN a.last_archived_wal ~ '^[0-9A-F]{24}' THEN (pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0') - w.file_bytes * (1 + (
        SELECT p.segment_number FROM pg_split_walfile_name(substr(a.last_archived_wal, 1, 24)) p)))::float8 END,
    w.file_bytes, (SELECT s.setting::int FROM pg_settings s WHERE s.name = 'archive_timeout'),
    EXISTS (SELECT FROM pg_replication_slots r WHERE r.slot_type = 'physical' AND r.active)
FROM pg_stat_archiver a, LATERAL (SELECT pg_size_bytes(current_setting('wal_segment_size'))::float8 AS file_bytes) w;

-- name: slots
-- Return the replication slots: bytes of the write-ahead log from where each reads, what became of it, whether anyone reads.
SELECT r.slot_name, coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), r.restart_lsn), 0)::float8, coalesce(r.wal_status, 'lost'), r.active
FROM pg_replication_slots r WHERE NOT r.temporary ORDER BY r.slot_name;

-- name: has_checksums
-- Return whether a page that the disk altered is noticed.
SELECT current_setting('data_checksums') = 'on';

-- name: has_keys
-- Return whether the service's keys were made, which a start does.
SELECT EXISTS (SELECT FROM statesvc.service_key);
