// A worker in Node.js on the claim protocol (docs/claim-protocol.md): reads plain scans of our format, declines the rest.
import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';
import pg from 'pg';

const INBOX_KEY = Buffer.from(process.env.STATESVC_INBOX_KEY, 'base64');
const NORMALIZER = 'canonical@js-1';
const WORKER = `js-${process.pid}`;
const CLAIM = `SELECT message_id, token, sealed_key, commitment, sealed FROM statesvc.claim(
  p_worker => $1, p_limit => 64, p_lease => '30 s', p_stage => $2, p_sweep => $3, p_normalizer => $4, p_carriers => ARRAY['canonical'])`;
const NEXT_DUE = 'SELECT extract(epoch FROM statesvc.next_due() - statesvc.clock())::float8 AS seconds';

const KEYS = 'event_id,occurred_at,status,tracking_number';
const STATUSES = new Set(['info_received', 'picked_up', 'in_transit', 'out_for_delivery', 'delivered']);
const PLAIN = /^[A-Za-z0-9]{4,40}$/;
const TIME = /^(20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,6}))?([+-](?:0\d|1[0-4]):[0-5]\d)$/;

const sha256 = (...parts) => parts.reduce((hash, part) => hash.update(part), createHash('sha256')).digest();
const keyId = (key) => sha256('statesvc key id\x1f', key).subarray(0, 8);

function seal(key, plaintext, context) {
  const nonce = randomBytes(12);
  const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(context);
  return Buffer.concat([Buffer.of(1), keyId(key), nonce, cipher.update(plaintext), cipher.final(), cipher.getAuthTag()]);
}

function unseal(key, sealed, context) {
  if (sealed[0] !== 1 || !sealed.subarray(1, 9).equals(keyId(key))) throw new Error('of another format, or sealed under another key');
  const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(9, 21), { authTagLength: 16 });
  decipher.setAAD(context).setAuthTag(sealed.subarray(-16));
  return Buffer.concat([decipher.update(sealed.subarray(21, -16)), decipher.final()]);
}

/** Return the hand-over document; throw unless the Python normalizer surely reads the same. */
function read(body) {
  const text = body.toString('latin1');
  const event = JSON.parse(text);
  // an exact round trip excludes repeated keys and other spellings of a number
  if (JSON.stringify(event) !== text || Object.keys(event).sort().join() !== KEYS) throw new Error('no plain scan');
  const { event_id: id, tracking_number: number, occurred_at: printed, status } = event;
  const isPlain = [id, number].every((value) => typeof value === 'string' && PLAIN.test(value)) && STATUSES.has(status);
  const found = typeof printed === 'string' && TIME.exec(printed);
  if (!isPlain || !found) throw new Error('values that are not plain');
  const [, wall, decimals, offset] = found;
  if (new Date(`${wall}Z`).toISOString().slice(0, 19) !== wall) throw new Error('a time that does not exist');
  const fraction = Number(decimals ?? 0) ? `.${decimals.padEnd(6, '0')}` : ''; // six digits or none
  const utc = `${new Date(wall + offset).toISOString().slice(0, 19)}${fraction}+00:00`;
  const reading = {
    tracking_number: number,
    native_id: id,
    kind: 'scan',
    status,
    raw: { further: ['scan', status, '', '', utc] },
    time: {
      printed,
      instant: printed,
      tz_source: 'explicit',
      precision: 'second',
      identity: wall.replaceAll(/[-:]/g, '') + fraction,
    },
  };
  return Buffer.from(JSON.stringify({ format: 1, readings: [reading] }));
}

/** null: declined. */
function handOver(message) {
  const context = Buffer.from(message.message_id.replaceAll('-', ''), 'hex');
  try {
    const bodyKey = unseal(INBOX_KEY, message.sealed_key, context);
    const salted = unseal(bodyKey, message.sealed, context);
    if (!sha256(salted).equals(message.commitment)) return null;
    const events = seal(bodyKey, read(salted.subarray(32)), context).toString('base64');
    return { message_id: message.message_id, normalizer: NORMALIZER, events };
  } catch {
    return null;
  }
}

async function settle(client, messages) {
  const [{ token }] = messages;
  const results = messages.map(handOver);
  const readHere = results.filter((result) => result !== null);
  const declined = messages.filter((_, index) => results[index] === null).map((message) => message.message_id);
  if (readHere.length) await client.query('SELECT statesvc.settle($1, $2)', [token, JSON.stringify(readHere)]);
  if (declined.length) await client.query('SELECT statesvc.decline($1, $2)', [token, declined]);
  await client.query("SELECT pg_notify('statesvc_inbox', '')");
}

async function connect() {
  const client = new pg.Client({
    application_name: WORKER,
    statement_timeout: 15_000,
    lock_timeout: 15_000,
    idle_in_transaction_session_timeout: 15_000,
    options: "-c idle_session_timeout=0",
  });
  client.on('error', () => process.exit(1));
  await client.connect();
  return client;
}

let stopping = false;
let isWoken = false;
let wakeSleeper = () => {};
const wake = () => {
  isWoken = true;
  wakeSleeper();
};
const sleep = (milliseconds) =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    wakeSleeper = () => {
      clearTimeout(timer);
      resolve();
    };
    if (isWoken) wakeSleeper();
  });
for (const name of ['SIGTERM', 'SIGINT']) {
  process.on(name, () => {
    stopping = true;
    wake();
  });
}

const [client, listener] = await Promise.all([connect(), connect()]);
listener.on('notification', wake);
await listener.query('LISTEN statesvc_inbox; LISTEN statesvc_trial');
console.log(`${WORKER} works`);

let sweptAt = -Infinity;
while (!stopping) {
  isWoken = false;
  const sweep = performance.now() - sweptAt >= 30_000;
  let { rows: messages } = await client.query(CLAIM, [WORKER, 'raw', sweep, NORMALIZER]);
  if (sweep) sweptAt = performance.now();
  // what an operator has this reading try, without effect
  if (!messages.length) messages = (await client.query(CLAIM, [WORKER, 'trial', false, NORMALIZER])).rows;
  if (messages.length && stopping) {
    await client.query('SELECT statesvc.release($1)', [messages[0].token]);
  } else if (messages.length) {
    await settle(client, messages);
  } else if (!stopping) {
    const [{ seconds }] = (await client.query(NEXT_DUE)).rows;
    await sleep(seconds === null ? 30_000 : Math.min(30_000, Math.max(1, seconds * 1000)));
  }
}
await Promise.all([client.end(), listener.end()]);
