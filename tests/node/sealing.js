// The one format of everything sealed: version byte 1, 8-byte key id, 12-byte nonce, AES-256-GCM ciphertext, 16-byte tag.
import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';

const FORMAT = Buffer.from([1]);
const HEADER_BYTES = 21;
const TAG_BYTES = 16;
const SALT_BYTES = 32;

const keyId = (key) => createHash('sha256').update('statesvc key id\x1f').update(key).digest().subarray(0, 8);

/** What a message's body and key are bound to: the 16 bytes of its id. */
export const messageContext = (messageId) => Buffer.from(messageId.replaceAll('-', ''), 'hex');

export function seal(key, plaintext, context) {
  const nonce = randomBytes(12);
  const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(context);
  return Buffer.concat([FORMAT, keyId(key), nonce, cipher.update(plaintext), cipher.final(), cipher.getAuthTag()]);
}

/** Throws when the key, the context or a byte is another. */
export function open(key, sealed, context) {
  if (sealed.length < HEADER_BYTES + TAG_BYTES || sealed[0] !== 1) throw new Error('not a sealed value of format 1');
  if (!sealed.subarray(1, 9).equals(keyId(key))) throw new Error('sealed under another key');
  const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(9, HEADER_BYTES), { authTagLength: TAG_BYTES });
  decipher.setAAD(context).setAuthTag(sealed.subarray(-TAG_BYTES));
  return Buffer.concat([decipher.update(sealed.subarray(HEADER_BYTES, -TAG_BYTES)), decipher.final()]);
}

/** The body of a claimed message and the key that sealed it. Throws when it is not the body that was committed to. */
export function openBody(inboxKey, message) {
  const context = messageContext(message.message_id);
  const bodyKey = open(inboxKey, message.sealed_key, context);
  const salted = open(bodyKey, message.sealed, context);
  if (!createHash('sha256').update(salted).digest().equals(message.commitment)) throw new Error('another body than was committed to');
  return { bodyKey, context, body: salted.subarray(SALT_BYTES) };
}
