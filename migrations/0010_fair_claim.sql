-- Fairness that operators can set, and a record of what went wrong with a message.
--
-- `allotment` is read by the claim, so a change is in effect at the next one. `message_attempt` holds the attempts that did not
-- settle; the functions of the claim protocol write it, so those of foreign workers stand there too. `worker` is who works here.

-- How much of each claim a carrier gets, and how many of its messages may be in workers' hands at a time (NULL: no bound). A
-- carrier without a row has weight 1 and no bound.
CREATE TABLE statesvc.allotment (
    carrier_id text PRIMARY KEY,
    weight float8 NOT NULL DEFAULT 1 CHECK (weight BETWEEN 0.01 AND 100),
    in_flight_max int CHECK (in_flight_max > 0),
    changed_at timestamptz NOT NULL,
    changed_by text NOT NULL,
    why text NOT NULL DEFAULT ''
);

-- Bodies that outlive their day: of messages that still wait, of open dead letters, under legal hold. The claim looks here where
-- `body` has none any more.
CREATE TABLE statesvc.body_kept (
    message_id uuid PRIMARY KEY,
    received_at timestamptz NOT NULL,
    carrier_id text NOT NULL,
    commitment bytea NOT NULL CHECK (octet_length(commitment) = 32),
    headers jsonb NOT NULL,
    sealed bytea NOT NULL
);
ALTER TABLE statesvc.body_kept ALTER COLUMN sealed SET STORAGE EXTERNAL;

ALTER TABLE statesvc.inbox ADD COLUMN leased_at timestamptz;

-- One row an attempt that did not settle. `retried`: given back after a transient failure; `lease_ended`: its worker died, froze
-- or was too slow, as found by the claim that took over; `buried`: it went to the dead letters. `attempt` counts within one life of
-- the message (a replay begins another), `attempt_id` orders all. `error`: a type, an SQLSTATE or a cause, never a value. Upkeep
-- forgets what is older than 90 days, unless its message still waits or lies in an open dead letter.
CREATE TABLE statesvc.message_attempt (
    attempt_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    message_id uuid NOT NULL,
    started_at timestamptz,
    ended_at timestamptz NOT NULL,
    attempt smallint NOT NULL,
    carrier_id text NOT NULL,
    outcome text NOT NULL CHECK (outcome IN ('retried', 'lease_ended', 'buried')),
    worker text,
    error text CHECK (length(error) <= 200),
    normalizer text
);
CREATE INDEX message_attempt_message ON statesvc.message_attempt (message_id, attempt_id);
CREATE INDEX message_attempt_rescued ON statesvc.message_attempt (ended_at) WHERE outcome = 'lease_ended';
-- ended_at only grows with the heap
CREATE INDEX message_attempt_ended ON statesvc.message_attempt USING brin (ended_at) WITH (autosummarize = on);

-- One row a start of a process of this service: it says every few seconds that it lives, and goes with a clean exit.
CREATE TABLE statesvc.worker (
    worker_id text PRIMARY KEY,
    role text NOT NULL,
    host text NOT NULL,
    pid int NOT NULL,
    version text NOT NULL,
    started_at timestamptz NOT NULL,
    last_seen_at timestamptz NOT NULL,
    stopping_at timestamptz
) WITH (fillfactor = 50);
