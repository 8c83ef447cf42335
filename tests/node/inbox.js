// The claim protocol as a foreign worker needs it. Every call is a transaction by itself.

const CLAIM = `SELECT message_id, carrier_id, token, sealed_key, commitment, sealed
  FROM statesvc.claim($1, $2, make_interval(secs => $3), $4, p_sweep => $5, p_normalizer => $6, p_carriers => $7)`;
const NEXT_DUE = 'SELECT extract(epoch FROM statesvc.next_due() - statesvc.clock())::float8 AS seconds';

/** `stage`: 'raw', or 'trial': to be read without effect. `normalizer` null: beside the Python workers, of carriers that nobody shares. */
export const claim = async (client, { worker, limit, leaseSeconds, stage = 'raw', sweep = false, normalizer = null, carriers = null }) =>
  (await client.query(CLAIM, [worker, limit, leaseSeconds, stage, sweep, normalizer, carriers])).rows;

/** Hands over what was read: `[{ message_id, normalizer, events }]`. Answers how many messages the token still held. */
export const settle = async (client, token, results) =>
  (await client.query('SELECT statesvc.settle($1, $2) AS held', [token, JSON.stringify(results)])).rows[0].held;

/** Leaves messages to the Python workers. */
export const decline = (client, token, messageIds) => client.query('SELECT statesvc.decline($1, $2)', [token, messageIds]);

export const release = (client, token) => client.query('SELECT statesvc.release($1)', [token]);

/** A hint, after the commit; it may be lost. */
export const wake = (client) => client.query("SELECT pg_notify('statesvc_inbox', '')");

export const secondsUntilDue = async (client) => (await client.query(NEXT_DUE)).rows[0].seconds;
