// carrier_id -> what reads it. `by` is what the log will name as the normalizer.
import { normalizeCanonical } from './canonical.js';
import { normalizeUps } from './ups.js';

const NORMALIZERS = new Map([
  ['ups', { by: 'ups@node-1', normalize: normalizeUps }],
  ['canonical', { by: 'canonical@node-1', normalize: normalizeCanonical }],
]);

/** The hand-over of one body and the name of who read it; null where this worker is not sure, for whatever reason. */
export function read(carrierId, body) {
  const normalizer = NORMALIZERS.get(carrierId);
  if (!normalizer) return null;
  try {
    const document = { format: 1, readings: normalizer.normalize(body) };
    return { by: normalizer.by, document: Buffer.from(JSON.stringify(document)) };
  } catch {
    return null;
  }
}
