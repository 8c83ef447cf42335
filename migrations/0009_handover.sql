-- Hand-over: what a worker in another language needs beside the claim (docs/claim-protocol.md).
--
-- It may be sure of some formats of a carrier and not of others, so it can decline: the message goes back uncharged, and from
-- then on only workers that read everything claim it.

ALTER TABLE statesvc.inbox
    DROP CONSTRAINT inbox_stage_check,
    ADD CONSTRAINT inbox_stage_check CHECK (stage IN ('raw', 'declined', 'normalized')) NOT VALID;
ALTER TABLE statesvc.inbox VALIDATE CONSTRAINT inbox_stage_check;

-- A foreign worker's verdict on raw messages that it cannot read: at once available to the workers that read everything, and
-- to no foreign worker again. Uncharged. Returns how many the token still held.
CREATE FUNCTION statesvc.decline(p_token uuid, p_message_ids uuid[]) RETURNS int
    LANGUAGE plpgsql AS $$
DECLARE
    v_held int;
BEGIN
    UPDATE statesvc.inbox q
    SET token = NULL, worker = NULL, available_at = statesvc.clock(), attempts = q.attempts - 1, stage = 'declined'
    WHERE q.message_id = ANY (p_message_ids) AND q.token = p_token AND q.stage = 'raw';
    GET DIAGNOSTICS v_held = ROW_COUNT;
    RETURN v_held;
END
$$;
