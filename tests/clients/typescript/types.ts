// A caller in TypeScript: it compiles only if the types that openapi-typescript makes of the document say what the calls take and answer.
import type { operations, paths, webhooks } from 'statesvc-client'

type Answer<Call> = Call extends { responses: { 200: { content: { 'application/json': infer Body } } } } ? Body : never
type Page = Answer<paths['/v1/shipments']['get']>
type Query = NonNullable<operations['list_shipments']['parameters']['query']>
type References = operations['set_shipment_references']['requestBody']['content']['application/json']
type Change = webhooks['shipment.status_changed']['post']['requestBody']['content']['application/json']

export async function lateParcels (api: string, key: string): Promise<string[]> {
  const query: Query = { stalled_for: 'P3D', status: 'in_transit', limit: 50 }
  const wanted = new URLSearchParams(Object.entries(query).map(([name, value]) => [name, String(value)]))
  const answer = await fetch(`${api}/v1/shipments?${wanted}`, { headers: { Authorization: `Bearer ${key}` } })
  const page: Page = await answer.json()
  return page.items.map(shipment => `${shipment.carrier_id} ${shipment.tracking_number} ${shipment.status_since ?? ''}`)
}

export const references: References = { order_id: '4711', metadata: { shop: 'eu' } }

export const arrived = (change: Change): boolean => change.data.to === 'delivered'

// @ts-expect-error a filter that the contract does not know
export const wrong: Query = { colour: 'red' }
