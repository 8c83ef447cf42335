-- By which release of the IANA time zones (2026f) local times were read: by each running worker, and from when to when at all. An event that was
-- recorded while two releases were in use may have been read by either.
ALTER TABLE statesvc.worker ADD COLUMN zones text;

CREATE TABLE statesvc.zone_release (
    zones text PRIMARY KEY,
    first_at timestamptz NOT NULL,
    last_at timestamptz NOT NULL
);
SELECT statesvc.sample_little('statesvc.worker'), statesvc.sample_little('statesvc.subscription'), statesvc.sample_little('statesvc.zone_release');
