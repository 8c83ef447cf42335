/** The notification was not signed with this secret, or is older than the tolerance: answer 401 and do nothing. */
export class InvalidSignatureError extends Error {
  override readonly name = 'InvalidSignatureError'
}

/** A notification (Standard Webhooks 1.0.0). */
export interface Notification {
  type: string
  timestamp: string
  data: Record<string, unknown>
}

/**
 * Return a notification after checking its signature.
 *
 * @param secret `whsec_...`, as the subscription showed it once; several while a secret is rotated
 * @param headers the request's headers: a `Headers`, or an object as Node has it
 * @param body the raw body as it came: parsed and printed again it is another one
 */
export async function verify (
  secret: string | readonly string[],
  headers: Headers | Record<string, string | string[] | undefined>,
  body: string | Uint8Array,
  { toleranceSeconds = 300 } = {}
): Promise<Notification> {
  const [id, stamp, signatures] = ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map(name => header(headers, name)) as [string, string, string]
  const age = Math.abs(Date.now() / 1000 - Number(stamp))
  if (!(age <= toleranceSeconds)) throw new InvalidSignatureError('webhook-timestamp is too far from this machine\'s clock, or no number')
  const raw = typeof body === 'string' ? new TextEncoder().encode(body) : body
  const head = new TextEncoder().encode(`${id}.${stamp}.`)
  const signed = new Uint8Array(head.length + raw.length)
  signed.set(head)
  signed.set(raw, head.length)
  for (const each of typeof secret === 'string' ? [secret] : secret) {
    const key = await crypto.subtle.importKey('raw', bytesOf(each.replace(/^whsec_/, '')), { name: 'HMAC', hash: 'SHA-256' }, false, ['verify'])
    for (const signature of signatures.split(' ')) {
      if (!signature.startsWith('v1,')) continue
      const given = bytesOf(signature.slice('v1,'.length))
      // the comparison of WebCrypto takes the same time whatever differs
      if (await crypto.subtle.verify('HMAC', key, given, signed)) return JSON.parse(new TextDecoder().decode(raw)) as Notification
    }
  }
  throw new InvalidSignatureError('no signature is of this secret')
}

function header (headers: Headers | Record<string, string | string[] | undefined>, name: string): string {
  const value = headers instanceof Headers ? headers.get(name) : Object.entries(headers).find(([each]) => each.toLowerCase() === name)?.[1]
  if (typeof value !== 'string') throw new InvalidSignatureError(`the header ${name} is missing`)
  return value
}

function bytesOf (base64: string): Uint8Array<ArrayBuffer> {
  try {
    return Uint8Array.from(atob(base64), character => character.charCodeAt(0))
  } catch {
    return new Uint8Array()
  }
}
