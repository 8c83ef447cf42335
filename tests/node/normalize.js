// Reads bodies without a database: a line `{"carrier_id", "body": base64}` in, the hand-over or `null` out.
import { createInterface } from 'node:readline';

import { read } from './normalizers.js';

for await (const line of createInterface({ input: process.stdin })) {
  const { carrier_id: carrierId, body } = JSON.parse(line);
  console.log(read(carrierId, Buffer.from(body, 'base64'))?.document.toString() ?? 'null');
}
