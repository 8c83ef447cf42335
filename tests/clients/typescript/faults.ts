// Makes one call and prints how it ended: node faults.js URL CALL
import { ApiError, Client } from 'statesvc-client'

const [url = '', call = ''] = process.argv.slice(2)
const client = new Client(url, { key: 'k', timeout: 1, retries: { firstWait: 0.01, longestWait: 0.02 } })
const event = { carrier_id: 'ups', event_id: 'S-1', tracking_number: 'T1', occurred_at: '2026-05-01T10:00:00+02:00', status: 'in_transit' } as const
const calls: Record<string, () => Promise<unknown>> = {
  read: async () => { for await (const shipment of client.shipments.list()) console.error(shipment) },
  submit: async () => await client.events.submit(event),
  subscribe: async () => await client.calls.POST('/v1/subscriptions', { body: { url: 'https://example.com/hook' } })
}
try {
  await calls[call]!()
  console.log('done')
} catch (error) {
  console.log(error instanceof ApiError ? String(error.status) : 'no answer')
}
