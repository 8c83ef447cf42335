// node follower.js URL KEY: prints the tracking number of the first change of the stream
import { Client } from 'statesvc-client'

const [url = '', key = ''] = process.argv.slice(2)
for await (const change of new Client(url, { key }).stream()) {
  console.log(change.transition.tracking_number)
  process.exit(0)
}
