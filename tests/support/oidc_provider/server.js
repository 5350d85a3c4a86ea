// An OpenID provider on a free port: `node server.js`, with NODE_PATH (the folder of its packages) and ACCOUNTS (JSON:
// name -> groups) in the environment. It prints {"port": N} when it listens. Any password is right.
// POST /fault/NAME spoils the ID tokens from then on, as a provider that is broken or not the right one would.
'use strict'

const http = require('node:http')
const { generateKeyPairSync } = require('node:crypto')
const { pathToFileURL } = require('node:url')

const module_ = (path) => import(pathToFileURL(`${process.env.NODE_PATH}/${path}`))
const accounts = JSON.parse(process.env.ACCOUNTS)
const client = {
  client_id: 'console',
  client_secret: 'secret: of %the+console',
  application_type: 'native', // of a loopback address any port is right (RFC 8252, 7.3)
  redirect_uris: ['http://127.0.0.1/login/callback'],
  grant_types: ['authorization_code'],
  response_types: ['code'],
}

const newKey = () => generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
const encoded = (value) => Buffer.from(JSON.stringify(value)).toString('base64url')

async function main() {
  const { Provider } = await module_('oidc-provider/lib/index.js')
  const { SignJWT, decodeJwt } = await module_('jose/dist/webapi/index.js')
  const key = newKey()
  const signed = (claims, by = key) => new SignJWT(claims).setProtectedHeader({ alg: 'ES256', kid: 'first' }).sign(by)
  const faults = {
    none: (token) => token,
    nonce: (token) => signed({ ...decodeJwt(token), nonce: 'of another login' }),
    audience: (token) => signed({ ...decodeJwt(token), aud: 'another client' }),
    key: (token) => signed(decodeJwt(token), newKey()),
    unsigned: (token) => `${encoded({ alg: 'none' })}.${encoded(decodeJwt(token))}.`,
    missing: () => undefined,
  }
  let fault = 'none'

  const server = http.createServer()
  server.listen(Number(process.env.PORT || 0), '127.0.0.1', () => {
    const { port } = server.address()
    const provider = new Provider(`http://127.0.0.1:${port}`, {
      clients: [client],
      jwks: { keys: [{ ...key.export({ format: 'jwk' }), kid: 'first', use: 'sig', alg: 'ES256' }] },
      cookies: { keys: ['of the tests'] },
      claims: { profile: ['preferred_username', 'groups'] },
      clientDefaults: { id_token_signed_response_alg: 'ES256' },
      conformIdTokenClaims: false, // claims are in the ID token, as Keycloak and Entra have them
      findAccount: (_, name) => ({
        accountId: name,
        claims: () => ({ sub: `id-of-${name}`, preferred_username: name, groups: accounts[name] }),
      }),
    })
    provider.use(async (context, next) => {
      const named = context.method === 'POST' && context.path.match(/^\/fault\/(\w+)$/)
      if (named) {
        fault = named[1]
        context.status = 204
        return
      }
      await next()
      if (context.path === '/token' && context.body.id_token) {
        context.body.id_token = await faults[fault](context.body.id_token)
      }
    })
    server.on('request', provider.callback())
    console.log(JSON.stringify({ port }))
  })
}

main()
