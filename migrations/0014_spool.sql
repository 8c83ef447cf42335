-- The spool before the inbox (docs/decisions/0039-spool.md).

-- Ids that were acknowledged from a spool, while the message was stored under another: each resolves for ever.
CREATE TABLE statesvc.message_alias (
    message_id uuid PRIMARY KEY,
    kept_id uuid NOT NULL
);

-- The spools that hold acknowledged messages, as the process that drains each last reported it. `place`: all before it is stored, written
-- by the transaction that stores it; after a restore it is older, and what the spool still has is drained again. `clear_until`: each
-- message with an id before it is stored. `held_seconds`: how long a message may stay in the spool.
CREATE TABLE statesvc.spool (
    name text PRIMARY KEY,
    place bigint NOT NULL DEFAULT 0,
    messages bigint NOT NULL DEFAULT 0,
    bytes bigint NOT NULL DEFAULT 0,
    set_aside bigint NOT NULL DEFAULT 0,
    oldest_at timestamptz,
    clear_until timestamptz NOT NULL DEFAULT 'epoch',
    seen_at timestamptz NOT NULL,
    held_seconds float8 NOT NULL
) WITH (fillfactor = 50);
SELECT statesvc.sample_little('statesvc.message_alias'), statesvc.sample_little('statesvc.spool');
