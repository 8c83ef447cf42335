import { EventSourceParserStream } from 'eventsource-parser/stream'
import createClient, { type Client as Calls } from 'openapi-fetch'
import { ApiError } from './errors.js'
import { DEFAULT_RETRIES, retryingFetch, type RetryPolicy } from './retries.js'
import type { components, operations, paths } from './schema.js'

export type Schemas = components['schemas']
type Query<Operation extends keyof operations> = NonNullable<operations[Operation]['parameters']['query']>
type Answer<Path extends keyof paths> = paths[Path] extends { get: { responses: { 200: { content: { 'application/json': infer Body } } } } } ? Body : never
export type Shipment = Answer<'/v1/shipments/{carrier_id}/{tracking_number}'>
export type ListedShipment = Answer<'/v1/shipments'>['items'][number]
export type ShipmentEvent = Answer<'/v1/shipments/{carrier_id}/{tracking_number}/history'>['items'][number]
export type FeedEntry = Answer<'/v1/feed'>['items'][number]
export type Transition = Answer<'/v1/feed/transitions'>['items'][number]

/** One change of a shipment's status. `id` is where to go on: `stream({ after: change.id })`. */
export interface Change { id: string, transition: Transition }

export interface Options {
  key?: string
  /** Seconds without an answer after which a try is given up. */
  timeout?: number
  retries?: Partial<RetryPolicy>
  fetch?: typeof fetch
}

const SILENCE_SECONDS = 45

/** The address of a service without a slash at its end. */
function address (url: string): string {
  if (!/^https?:\/\/[^/]/.test(url)) throw new TypeError('url should be the address of a service with its scheme, such as https://statesvc.example.com')
  const stripped = url.replace(/\/+$/, '')
  if (stripped.endsWith('/v1')) throw new TypeError('url should end before /v1, such as https://statesvc.example.com: the client adds that itself')
  return stripped
}

/** Call a statesvc at `url`. Each call throws an `ApiError` for an answer of 400 or more, and what `fetch` throws where there was none. */
export class Client {
  /** Every call of the API, typed by its path: `client.calls.GET('/v1/queue')`. */
  readonly calls: Calls<paths>
  readonly #fetch: (request: Request) => Promise<Response>
  readonly #url: string
  readonly #headers: Record<string, string>

  constructor (url: string, { key, timeout = 30, retries = {}, fetch: send = fetch }: Options = {}) {
    this.#url = address(url)
    // a misspelt member or word is an error and no warning
    this.#headers = { Prefer: 'handling=strict', ...(key === undefined ? {} : { Authorization: `Bearer ${key}` }) }
    this.#fetch = retryingFetch(send, timeout, { ...DEFAULT_RETRIES, ...retries })
    this.calls = createClient<paths>({ baseUrl: this.#url, headers: this.#headers, fetch: this.#fetch })
    this.calls.use({
      async onResponse ({ response }) {
        if (response.status >= 400) throw await ApiError.of(response)
      }
    })
  }

  readonly shipments = {
    /** A shipment's state; `as_of` what was known then. */
    get: async (carrierId: string, trackingNumber: string, query: Query<'get_shipment'> = {}): Promise<Shipment> =>
      value(await this.calls.GET('/v1/shipments/{carrier_id}/{tracking_number}', {
        params: { path: { carrier_id: carrierId, tracking_number: trackingNumber }, query }
      })),

    /** Shipments in the order of their last change, page by page. */
    list: (query: Omit<Query<'list_shipments'>, 'cursor'> = {}): AsyncGenerator<ListedShipment> =>
      items(async cursor => value(await this.calls.GET('/v1/shipments', { params: { query: { ...query, cursor } } }))),

    /** At most 200 numbers at once, with their carrier or without; in the order asked. */
    lookup: async (numbers: Schemas['NumberToLookUp'][]): Promise<Schemas['LookedUpNumber'][]> =>
      value(await this.calls.POST('/v1/shipments/lookup', { body: { numbers } })).items,

    /** Await a number: if nothing is heard of it within these hours, `shipment.never_heard` is sent. */
    expect: async (carrierId: string, trackingNumber: string, hours: number): Promise<Schemas['AwaitedShown']> =>
      value(await this.calls.PUT('/v1/shipments/{carrier_id}/{tracking_number}/awaited', {
        params: { path: { carrier_id: carrierId, tracking_number: trackingNumber } }, body: { hours }
      })),

    /** Await a number no longer. */
    stopExpecting: async (carrierId: string, trackingNumber: string): Promise<void> => {
      await this.calls.DELETE('/v1/shipments/{carrier_id}/{tracking_number}/awaited', {
        params: { path: { carrier_id: carrierId, tracking_number: trackingNumber } }
      })
    },

    /** A shipment's events in timeline order. */
    history: (carrierId: string, trackingNumber: string, query: Omit<Query<'get_shipment_history'>, 'cursor'> = {}): AsyncGenerator<ShipmentEvent> =>
      items(async cursor => value(await this.calls.GET('/v1/shipments/{carrier_id}/{tracking_number}/history', {
        params: { path: { carrier_id: carrierId, tracking_number: trackingNumber }, query: { ...query, cursor } }
      })))
  }

  readonly subscriptions = {
    /** Subscribe; the answer has the `secret`, which is shown this once. */
    create: async (wish: Schemas['SubscriptionInput']): Promise<Schemas['SubscriptionMade']> =>
      value(await this.calls.POST('/v1/subscriptions', { body: wish })),

    /** Change the given fields; the others stay. */
    change: async (id: string, change: Schemas['SubscriptionChange']): Promise<Schemas['SubscriptionShown']> =>
      value(await this.calls.PATCH('/v1/subscriptions/{subscription_id}', { params: { path: { subscription_id: id } }, body: change })),

    /** The notifications of a subscription with their attempts, the newest first. */
    notifications: (id: string, query: Omit<Query<'list_notifications'>, 'cursor'> = {}): AsyncGenerator<Schemas['NotificationShown']> =>
      items(async cursor => value(await this.calls.GET('/v1/subscriptions/{subscription_id}/notifications', {
        params: { path: { subscription_id: id }, query: { ...query, cursor } }
      }))),

    /** One notification with its body as it was sent. */
    notification: async (id: string, webhookId: string, query: Query<'get_notification'> = {}) =>
      value(await this.calls.GET('/v1/subscriptions/{subscription_id}/notifications/{webhook_id}', {
        params: { path: { subscription_id: id, webhook_id: webhookId }, query }
      })),

    /** Send a notification again, under its id. */
    resend: async (id: string, webhookId: string): Promise<Schemas['NotificationShown']> =>
      value(await this.calls.POST('/v1/subscriptions/{subscription_id}/notifications/{webhook_id}/resend', {
        params: { path: { subscription_id: id, webhook_id: webhookId } }
      }))
  }

  readonly events = {
    /** Append one event; safe to submit again: its `event_id` says that it is the same. */
    submit: async (event: Schemas['CanonicalEvent']): Promise<Schemas['EventVerdict']> => {
      const response = await this.#send('/v1/events', { method: 'POST', body: JSON.stringify(event), headers: { 'Content-Type': 'application/json' } })
      return await response.json() as Schemas['EventVerdict']
    }
  }

  /** The entries behind a cursor, up to the log's end (scope `audit`). */
  async * feed ({ after = '-1' } = {}): AsyncGenerator<FeedEntry> {
    for (let cursor: string | null = after; cursor !== null;) {
      const page: Answer<'/v1/feed'> = value(await this.calls.GET('/v1/feed', { params: { query: { after: cursor, limit: 500 } } }))
      yield * page.items
      cursor = page.next_cursor
    }
  }

  /** Follow changes of status, for ever: a lost connection is taken up where it ended. `after` "-1": from the first entry on. */
  async * stream ({ after, carriers = [], statuses = [] }: { after?: string, carriers?: string[], statuses?: Array<Schemas['Status']> } = {}): AsyncGenerator<Change> {
    const query = new URLSearchParams([...carriers.map(each => ['carrier_id', each]), ...statuses.map(each => ['status', each])])
    let lastId = after
    let pause = 1
    while (true) {
      const silence = new AbortController()
      let timer: ReturnType<typeof setTimeout> | undefined
      const heard = (): void => {
        clearTimeout(timer)
        timer = setTimeout(() => { silence.abort() }, SILENCE_SECONDS * 1000)
      }
      try {
        heard()
        const headers: Record<string, string> = lastId === undefined ? {} : { 'Last-Event-ID': lastId }
        const response = await this.#send(`/v1/stream?${query}`, { headers, signal: silence.signal })
        const listen = new TransformStream<Uint8Array, Uint8Array>({ transform (chunk, controller) { heard(); controller.enqueue(chunk) } })
        const parser = new EventSourceParserStream({ onRetry: milliseconds => { pause = milliseconds / 1000 } })
        const events = response.body!.pipeThrough(listen).pipeThrough(new TextDecoderStream() as TransformStream<Uint8Array, string>).pipeThrough(parser)
        for await (const event of events) {
          lastId = event.id ?? lastId
          if (event.event === 'reset') throw new ApiError(410, { code: 'cursor_lost', detail: event.data }, undefined)
          if (event.event === 'shipment.status_changed') yield { id: event.id ?? '', transition: JSON.parse(event.data) as Transition }
        }
      } catch (error) {
        // cut off, or silent for too long: come back
        if (error instanceof ApiError) throw error
      } finally {
        clearTimeout(timer)
        silence.abort()
      }
      await new Promise(resolve => setTimeout(resolve, pause * 1000))
    }
  }

  async #send (path: string, { headers, ...init }: RequestInit & { headers: Record<string, string> }): Promise<Response> {
    const response = await this.#fetch(new Request(this.#url + path, { ...init, headers: { ...this.#headers, ...headers } }))
    if (response.status >= 400) throw await ApiError.of(response)
    return response
  }
}

/** What an answer holds; errors were thrown before. */
function value<Body> (answer: { data?: Body }): Body {
  if (answer.data === undefined) throw new TypeError('the service answered something that its document does not have')
  return answer.data
}

async function * items<Item> (page: (cursor: string | null) => Promise<{ items: Item[], next_cursor: string | null }>): AsyncGenerator<Item> {
  for (let cursor: string | null = null; ;) {
    const read = await page(cursor)
    yield * read.items
    cursor = read.next_cursor
    if (cursor === null) return
  }
}
