// A normalizing worker beside the Python ones: claims raw messages, reads them, hands over what it read. It knows the database
// (the PG* variables of libpq, or DATABASE_URL) and the inbox key (STATESVC_INBOX_KEY, base64), nothing else.
// Ends with 1 when the database goes away, so that whoever supervises it starts it again; SIGTERM ends it with 0 after its batch.
import pg from 'pg';

import { claim, decline, release, secondsUntilDue, settle, wake } from './inbox.js';
import { read } from './normalizers.js';
import { openBody, seal } from './sealing.js';

const {
  DATABASE_URL: connectionString,
  STATESVC_INBOX_KEY = '',
  LEASE_SECONDS = '30',
  BATCH = '64',
  SWEEP_SECONDS = '30',
  WORKER = `node-${process.pid}`,
  NORMALIZER,
  CARRIERS,
  PLANTED = '{}',
} = process.env;
const inboxKey = Buffer.from(STATESVC_INBOX_KEY, 'base64');
const leaseSeconds = Number(LEASE_SECONDS);
// what it reads otherwise than it should, for stories about rollouts: another status of some codes, no events of others
const planted = { status: {}, omit: [], ...JSON.parse(PLANTED) };
const sweepMs = Number(SWEEP_SECONDS) * 1000;
// what a rollout calls this fleet; without a name it works where nobody shares
const asked = { worker: WORKER, limit: Number(BATCH), leaseSeconds, normalizer: NORMALIZER ?? null, carriers: CARRIERS?.split(',') ?? null };

if (inboxKey.length !== 32) {
  console.error('STATESVC_INBOX_KEY should be base64 of the 32 bytes of the inbox key');
  process.exit(2);
}

/** A flag that a notification or a signal sets, and that one waiter sleeps on. */
class Wakening {
  #set = false;
  #resolve = null;

  set() {
    this.#set = true;
    this.#resolve?.();
  }

  clear() {
    this.#set = false;
  }

  async wait(milliseconds) {
    if (this.#set) return;
    let timer;
    await new Promise((resolve) => {
      this.#resolve = resolve;
      timer = setTimeout(resolve, milliseconds);
    });
    clearTimeout(timer);
    this.#resolve = null;
  }
}

async function connect() {
  const timeoutMs = Math.floor((leaseSeconds * 1000) / 2);
  const client = new pg.Client({
    connectionString,
    application_name: WORKER,
    statement_timeout: timeoutMs,
    lock_timeout: timeoutMs,
    idle_in_transaction_session_timeout: timeoutMs,
  });
  client.on('error', (error) => {
    console.error(`the database went away: ${error.code ?? error.message}`);
    process.exit(1);
  });
  await client.connect();
  return client;
}

function plant(document) {
  if (PLANTED === '{}') return document;
  const said = JSON.parse(document);
  said.readings = said.readings.filter(({ raw }) => !planted.omit.includes(raw.code));
  for (const reading of said.readings) reading.status = planted.status[reading.raw.code] ?? reading.status;
  return Buffer.from(JSON.stringify(said));
}

/** The hand-over of one message, or null: opened, read, sealed again under the body's own key. */
function handOver(message) {
  try {
    const { bodyKey, context, body } = openBody(inboxKey, message);
    const found = read(message.carrier_id, body);
    if (found === null) return null;
    const events = seal(bodyKey, plant(found.document), context).toString('base64');
    return { message_id: message.message_id, normalizer: NORMALIZER ?? found.by, events };
  } catch {
    // the Python workers find out why it does not open, and say so to a human
    return null;
  }
}

async function work(client, messages) {
  const [{ token }] = messages;
  const results = [];
  const declined = [];
  for (const message of messages) {
    const result = handOver(message);
    if (result === null) declined.push(message.message_id);
    else results.push(result);
  }
  if (results.length) await settle(client, token, results);
  if (declined.length) await decline(client, token, declined);
  await wake(client);
}

const woken = new Wakening();
let stopping = false;
for (const signal of ['SIGTERM', 'SIGINT']) {
  process.on(signal, () => {
    stopping = true;
    woken.set();
  });
}

const [client, listener] = await Promise.all([connect(), connect()]);
listener.on('notification', () => woken.set());
await listener.query('LISTEN statesvc_inbox; LISTEN statesvc_trial');
console.log(`${WORKER} works`);

let sweptAt = -Infinity;
while (!stopping) {
  woken.clear();
  const sweep = performance.now() - sweptAt >= sweepMs;
  let messages = await claim(client, { ...asked, sweep });
  if (!messages.length && NORMALIZER) messages = await claim(client, { ...asked, stage: 'trial' });
  if (sweep) sweptAt = performance.now();
  if (messages.length && stopping) {
    await release(client, messages[0].token);
  } else if (messages.length) {
    await work(client, messages);
  } else {
    const due = await secondsUntilDue(client);
    await woken.wait(due === null ? sweepMs : Math.min(sweepMs, Math.max(0, due * 1000) + 1));
  }
}
await Promise.all([client.end(), listener.end()]);
