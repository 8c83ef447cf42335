// node signatures.js SECRET HEADERS BODY: prints the type of a notification that is signed, or why it is not taken
import { InvalidSignatureError, verify } from 'statesvc-client'

const [secret = '', headers = '{}', body = ''] = process.argv.slice(2)
try {
  console.log((await verify(secret, JSON.parse(headers) as Record<string, string>, body)).type)
} catch (error) {
  console.log(error instanceof InvalidSignatureError ? error.message : String(error))
}
