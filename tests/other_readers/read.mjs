// What readers of others find: `node read.mjs READER FILE`, in the folder with node_modules.
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

const require = createRequire(pathToFileURL(`${process.cwd()}/`))
const load = (name) => import(pathToFileURL(require.resolve(name)).href)
const [reader, file] = process.argv.slice(2)

const readers = {
  async asyncapi(bytes) {
    const { Parser } = require('@asyncapi/parser')
    const { document, diagnostics } = await new Parser().parse(bytes.toString())
    const problems = diagnostics.filter((each) => each.severity < 2)
    const addresses = document?.allChannels().all().map((channel) => channel.address())
    return { problems, addresses }
  },
  async gtfs_rt(bytes) {
    const { transit_realtime: gtfs } = require('gtfs-realtime-bindings')
    return gtfs.FeedMessage.toObject(gtfs.FeedMessage.decode(bytes), { longs: Number })
  },
  async meshtastic(bytes) {
    const { fromJson, toJson } = require('@bufbuild/protobuf')
    const folder = new URL('node_modules/@meshtastic/protobufs/dist/mod.js', pathToFileURL(`${process.cwd()}/`))
    const { Mesh } = await import(folder.href)
    const { payload } = JSON.parse(bytes.toString())
    return toJson(Mesh.PositionSchema, fromJson(Mesh.PositionSchema, payload))
  },
}

console.log(JSON.stringify(await readers[reader](readFileSync(file))))
