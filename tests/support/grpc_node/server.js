// A service on Node that implements waitreg_handler.v1.Handler: `node server.js`, with PORT, PROTO, PROTO_ROOT in the environment
// and, for TLS, CERTIFICATE_FILE and KEY_FILE (and CLIENTS_FILE to demand client certificates). It prints a JSON line per
// event. The value of a record says what to answer, as JSON: {"status": 8, "details": "hex"}, {"discard": "why"},
// {"never": true}; any other value is done.
'use strict'

const fs = require('node:fs')
const grpc = require('@grpc/grpc-js')
const loader = require('@grpc/proto-loader')

const env = process.env
const loaded = loader.loadSync(env.PROTO, { includeDirs: [env.PROTO_ROOT], longs: String, enums: String, oneofs: true })
const { Handler } = grpc.loadPackageDefinition(loaded).waitreg_handler.v1

const print = (event) => console.log(JSON.stringify(event))
// An optional field that is absent is undefined or null, by the loader's version.
const hex = (bytes) => (bytes == null ? null : bytes.toString('hex'))

function seen(call) {
  const record = call.request
  const headers = (record.headers || []).map(({ name, value }) => [name, hex(value)])
  const remaining = call.getDeadline() - Date.now()
  return { ...record, key: hex(record.key), value: hex(record.value), headers, remaining, metadata: call.metadata.getMap() }
}

function wanted(value) {
  try {
    return JSON.parse(value) || {}
  } catch {
    return {}
  }
}

function handle(call, answer) {
  const { status, details, discard, never } = wanted(call.request.value)
  print(seen(call))
  if (never) {
    call.on('cancelled', () => print({ cancelled: true }))
    return
  }
  if (status) {
    const metadata = new grpc.Metadata()
    if (details) metadata.set('grpc-status-details-bin', Buffer.from(details, 'hex'))
    answer({ code: status, details: 'as the test wants', metadata })
  } else {
    answer(null, discard === undefined ? {} : { discard: { reason: discard } })
  }
}

function credentials() {
  if (!env.CERTIFICATE_FILE) return grpc.ServerCredentials.createInsecure()
  const own = { cert_chain: fs.readFileSync(env.CERTIFICATE_FILE), private_key: fs.readFileSync(env.KEY_FILE) }
  const clients = env.CLIENTS_FILE ? fs.readFileSync(env.CLIENTS_FILE) : null
  return grpc.ServerCredentials.createSsl(clients, [own], clients !== null)
}

const server = new grpc.Server()
server.addService(Handler.service, { Handle: handle })
server.bindAsync(`127.0.0.1:${env.PORT}`, credentials(), (error, port) => {
  if (error) throw error
  print({ port })
})
