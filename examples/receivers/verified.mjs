import { createHmac, timingSafeEqual } from 'node:crypto'

export function verified (secret, headers, body) {
  const stamp = headers['webhook-timestamp']
  if (!(Math.abs(Date.now() / 1000 - Number(stamp)) <= 300)) throw new Error('too old, or your clock is wrong')
  const mac = createHmac('sha256', Buffer.from(secret.replace('whsec_', ''), 'base64'))
  const expected = Buffer.from('v1,' + mac.update(`${headers['webhook-id']}.${stamp}.`).update(body).digest('base64'))
  const equals = given => given.length === expected.length && timingSafeEqual(given, expected)
  if (!headers['webhook-signature'].split(' ').some(given => equals(Buffer.from(given)))) throw new Error('not signed with this secret')
  return JSON.parse(body)
}
