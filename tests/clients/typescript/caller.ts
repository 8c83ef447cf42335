// A caller's program: node caller.js URL INGEST_KEY READ_KEY; prints what it saw as JSON.
import { ApiError, Client } from 'statesvc-client'

const [url = '', ingestKey = '', readKey = ''] = process.argv.slice(2)
const NUMBER = '1ZNODE00000000000001'
const ingest = new Client(url, { key: ingestKey })
const read = new Client(url, { key: readKey })

const verdicts: string[] = []
for (const [day, status] of (['picked_up', 'in_transit', 'delivered'] as const).entries()) {
  const event = { carrier_id: 'ups', event_id: `scan-${day}`, tracking_number: NUMBER, occurred_at: `2026-05-0${day + 1}T10:00:00+02:00`, status }
  verdicts.push((await ingest.events.submit(event)).verdict)
}
const history: string[] = []
for await (const event of read.shipments.history('ups', NUMBER, { limit: 2 })) history.push(String(event.status))
const listed: string[] = []
for await (const shipment of read.shipments.list({ tracking_number: NUMBER })) listed.push(String(shipment.status))
const streamed: string[] = []
const ids: string[] = []
for await (const change of read.stream({ after: '-1' })) {
  streamed.push(String(change.transition.to))
  ids.push(change.id)
  if (change.transition.to === 'delivered') break
}
let resumed = ''
for await (const change of read.stream({ after: ids[0]! })) {
  resumed = change.id
  break
}
let refused: unknown
try {
  await read.shipments.get('ups', '1ZNEVER')
} catch (error) {
  refused = error instanceof ApiError ? [error.status, error.code] : error
}
console.log(JSON.stringify({ verdicts, history, listed, streamed, resumedAtSecond: resumed === ids[1], refused }))
process.exit(0)
