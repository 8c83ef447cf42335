-- migrate: no-transaction
-- How subscribers stand, what the operator is told of it, and what can be told again. Each statement may run again.
--
-- `subscription_failing` has a row for each subscription of which every attempt since `since` failed; the first that is delivered
-- deletes it. It is a table of its own, because claims read `subscription` all the time. A `notice` tells the operator what the service
-- did or saw by itself; `send_at` is when its webhook is due (NULL: it was told, or given up).

CREATE TABLE IF NOT EXISTS statesvc.subscription_failing (
    subscription_id uuid PRIMARY KEY,
    since timestamptz NOT NULL,
    last_at timestamptz NOT NULL,
    failures int NOT NULL CHECK (failures > 0),
    last_outcome text NOT NULL,
    last_status_code int,
    warned_at timestamptz
) WITH (fillfactor = 50);

CREATE TABLE IF NOT EXISTS statesvc.notice (
    notice_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind text NOT NULL,
    target text NOT NULL,
    created_at timestamptz NOT NULL,
    details jsonb NOT NULL,
    seen_at timestamptz,
    seen_by text,
    sends smallint NOT NULL DEFAULT 0,
    send_at timestamptz,
    told_at timestamptz
);
CREATE INDEX CONCURRENTLY IF NOT EXISTS notice_unseen ON statesvc.notice (notice_id) WHERE seen_at IS NULL;
CREATE INDEX CONCURRENTLY IF NOT EXISTS notice_due ON statesvc.notice (send_at) WHERE send_at IS NOT NULL;

-- `missed_since`: nothing was collected, or only failures were had, from then on; a replay from there tells what was missed.
ALTER TABLE statesvc.subscription ADD COLUMN IF NOT EXISTS missed_since timestamptz;

-- `shipments`: only of these, `carrier_id/NUMBER` each. `pii`: a full payload holds personal fields, which its maker had to be allowed to
-- read. `signature`: of the current secret. `give_up_after`: seconds by type, after which a notification is not tried again.
ALTER TABLE statesvc.subscription
    ADD COLUMN IF NOT EXISTS shipments text[],
    ADD COLUMN IF NOT EXISTS pii boolean NOT NULL DEFAULT false,
    ADD COLUMN IF NOT EXISTS signature text NOT NULL DEFAULT 'hmac' CHECK (signature IN ('hmac', 'ed25519')),
    ADD COLUMN IF NOT EXISTS give_up_after jsonb NOT NULL DEFAULT '{}';

-- A replay finds the changes of status that nobody was told of by the time at which they were recorded.
CREATE INDEX CONCURRENTLY IF NOT EXISTS transition_recorded ON statesvc.transition (recorded_at, shipment_id, sequence);
