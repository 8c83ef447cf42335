import { retryAfter } from './errors.js'

/** How often and how patiently; times are in seconds. */
export interface RetryPolicy {
  /** How many repeats follow the first try. */
  retries: number
  firstWait: number
  longestWait: number
  /** A `Retry-After` beyond this is not waited for. */
  longestRetryAfter: number
}

export const DEFAULT_RETRIES: RetryPolicy = { retries: 3, firstWait: 0.5, longestWait: 8, longestRetryAfter: 60 }

const IDEMPOTENT = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE'])
/** What a second call does not do again: an event has an id, the others only read or set a state. */
const REPEATABLE_POSTS = /\/v1\/(events|shipments\/lookup|shipments\/[^/]+\/[^/]+\/evidence|subscriptions\/[^/]+\/(pause|resume))$/
const UNAVAILABLE = new Set([502, 503, 504])

/** Whether a second request has no second effect, even if the first one was carried out. */
export function isRepeatable (request: Request): boolean {
  return IDEMPOTENT.has(request.method) || (request.method === 'POST' && REPEATABLE_POSTS.test(new URL(request.url).pathname))
}

/** A `fetch` that repeats what may be repeated, and gives a try up after `timeout` seconds without an answer. */
export function retryingFetch (send: typeof fetch, timeout: number, policy: RetryPolicy): (request: Request) => Promise<Response> {
  return async request => {
    for (let repeats = 0; ; repeats++) {
      let pause: number | undefined
      try {
        const response = await answered(send, request, timeout)
        pause = pauseAfter(response, request, policy, repeats)
        if (pause === undefined) return response
        await response.body?.cancel()
      } catch (error) {
        // fetch does not tell a refused connection from one that was cut off: only what has no second effect is repeated
        if (request.signal.aborted || repeats >= policy.retries || !isRepeatable(request)) throw error
        pause = backoff(policy, repeats)
      }
      await new Promise(resolve => setTimeout(resolve, pause * 1000))
    }
  }
}

/** The answer with its whole body, so that one that is cut off is asked for again; a stream as it begins. */
async function answered (send: typeof fetch, request: Request, timeout: number): Promise<Response> {
  const deadline = new AbortController()
  const timer = setTimeout(() => { deadline.abort(new Error(`no answer within ${timeout} s`)) }, timeout * 1000)
  try {
    const response = await send(request.clone(), { signal: AbortSignal.any([request.signal, deadline.signal]) })
    if (response.headers.get('content-type')?.startsWith('text/event-stream') === true) return response
    const body = response.body === null ? null : await response.arrayBuffer()
    return new Response(body, { status: response.status, statusText: response.statusText, headers: response.headers })
  } finally {
    clearTimeout(timer)
  }
}

function pauseAfter (response: Response, request: Request, policy: RetryPolicy, repeats: number): number | undefined {
  if (repeats >= policy.retries) return undefined
  if (response.status !== 429 && !(UNAVAILABLE.has(response.status) && isRepeatable(request))) return undefined
  const asked = retryAfter(response) ?? 0
  return asked > policy.longestRetryAfter ? undefined : Math.max(asked, backoff(policy, repeats))
}

function backoff (policy: RetryPolicy, repeats: number): number {
  const longest = Math.min(policy.longestWait, policy.firstWait * 2 ** repeats)
  return longest / 2 + Math.random() * longest / 2
}
