// Makes one call and prints how it ended: node faults.js URL CALL [TIMEOUT KEY SUBSCRIPTION NOTIFICATION]
import { ApiError, Client } from 'statesvc-client'

const [url = '', call = '', timeout = '1', key = 'k', subscription = '', notification = ''] = process.argv.slice(2)
const client = new Client(url, { key, timeout: Number(timeout), retries: { firstWait: 0.01, longestWait: 0.02 } })
const event = { carrier_id: 'ups', event_id: crypto.randomUUID(), tracking_number: 'T1', occurred_at: '2026-05-01T10:00:00+02:00', status: 'in_transit' } as const
const calls: Record<string, () => Promise<unknown>> = {
  read: async () => { for await (const shipment of client.shipments.list()) console.error(shipment) },
  submit: async () => await client.events.submit(event),
  pause: async () => await client.calls.POST('/v1/subscriptions/{subscription_id}/pause', { params: { path: { subscription_id: subscription } } }),
  rotate: async () => await client.calls.POST('/v1/subscriptions/{subscription_id}/rotate-secret', { params: { path: { subscription_id: subscription } } }),
  resend: async () => await client.subscriptions.resend(subscription, notification),
  subscribe: async () => await client.calls.POST('/v1/subscriptions', { body: { url: 'http://127.0.0.1:9/another' } })
}
try {
  await calls[call]!()
  console.log('done')
} catch (error) {
  console.log(error instanceof ApiError ? String(error.status) : 'no answer')
}
