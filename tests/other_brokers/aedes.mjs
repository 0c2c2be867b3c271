// aedes on a port: `node aedes.mjs PORT`, in the folder with node_modules.
import net from 'node:net'
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

const require = createRequire(pathToFileURL(`${process.cwd()}/`))
const { Aedes } = await import(pathToFileURL(require.resolve('aedes')).href)
const broker = await Aedes.createBroker()
const server = net.createServer(broker.handle)
server.listen(Number(process.argv[2]), '127.0.0.1', () => console.log('ready'))
process.on('SIGTERM', () => process.exit(0))
