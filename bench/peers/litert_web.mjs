// Runs a network on the LiteRT that Chromium has inside, on command, for reef_peers_bench: LiteRT.js brings
// the network to WebNN, which Chromium runs on its native LiteRT and XNNPACK.
//
// node litert_web.mjs [NETWORK.tflite DUMP]
//
// A line of JSON says the versions, and without a network that is all. Chromium writes the networks that
// its LiteRT gets to the folder DUMP. Then there is a line of JSON when the network is ready, and one for
// every line of input, whose words have tabs between them:
//   check IN OUT  runs the network once: its inputs are the bytes of the file IN, one behind the
//                 other, and its outputs are written to the file OUT in the same way
//   burst TIMES WARM_UP  runs that are not timed for WARM_UP milliseconds and one at least, TIMES two
//                 behind one another with the wait for the second's output, and as many of a network
//                 that does nothing: {"network_ns": [...], "overhead_ns": [...]}, of one run each
// The browser's own version is in the line that says that the network is ready. What fails, or takes
// minutes, ends the program with {"error": "..."}.
import { createRequire } from 'node:module';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const say = (answer) => process.stdout.write(`${JSON.stringify(answer)}\n`);
const fail = (error) => {
  // A browser that does not start says why below the first line.
  const lines = error.message.split('\n').map((line) => line.trim()).filter((line) => line);
  say({ error: [lines[0], ...lines.slice(1).filter((line) => /error while/i.test(line))].join(': ') });
  process.exit(1);
};
process.on('uncaughtException', fail);
process.on('unhandledRejection', fail);

const modules = process.env.REEF_LITERT_NODE_MODULES;
const require = modules ? createRequire(join(modules, 'here.js')) : createRequire(import.meta.url);
// A package's folder, whichever of its files others may see.
const folderOf = (name) => {
  const root = require.resolve.paths(name).map((path) => join(path, name)).find((path) => {
    try {
      return readFileSync(join(path, 'package.json'));
    } catch {
      return undefined;
    }
  });
  if (root === undefined) throw new Error(`Cannot find module '${name}'`);
  return root;
};
const versionOf = (name) =>
  JSON.parse(readFileSync(join(folderOf(name), 'package.json'), 'utf8')).version;

const chromiumPackage = '@sparticuz/chromium';
const named = process.env.REEF_CHROMIUM || undefined;
folderOf('playwright-core');
const liteRt = `LiteRT.js ${versionOf('@litertjs/core')}`;
say({ version: `${named ?? `${chromiumPackage} ${versionOf(chromiumPackage)}`}, ${liteRt}` });
const [network, dump] = process.argv.slice(2);
if (network === undefined) process.exit(0);

const { chromium } = require('playwright-core');
// The package unpacks to the temporary folder once, and takes what it finds there, of any version.
const unpacked = async () => {
  const { default: packed } = await import(pathToFileURL(require.resolve(chromiumPackage)));
  const before = process.env.TMPDIR;
  process.env.TMPDIR = join(folderOf(chromiumPackage), `unpacked-${versionOf(chromiumPackage)}`);
  mkdirSync(process.env.TMPDIR, { recursive: true });
  const path = await packed.executablePath();
  if (before === undefined) delete process.env.TMPDIR;
  else process.env.TMPDIR = before;
  return path;
};
const browser = await chromium.launch({
  executablePath: named ?? await unpacked(),
  args: ['--no-sandbox', `--webnn-tflite-dump-model=${dump}`,
    '--enable-features=WebMachineLearningNeuralNetwork,WebAssemblyExperimentalJSPI'],
});
const page = await browser.newPage();
page.on('crash', () => fail(new Error('the page that runs LiteRT.js crashed')));

// The page's files; its headers give it a clock of microseconds.
const imports = { '@litertjs/core': '/@litertjs/core/dist/index.js',
  '@litertjs/wasm-utils': '/@litertjs/wasm-utils/dist/index.js' };
const headers = { 'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Embedder-Policy': 'require-corp' };
let inputs = '';
await page.route('**/*', (route) => {
  const { pathname } = new URL(route.request().url());
  if (pathname === '/')
    return route.fulfill({ headers, contentType: 'text/html',
      body: `<script type=importmap>${JSON.stringify({ imports })}</script>` });
  if (pathname === '/network') return route.fulfill({ headers, path: network });
  if (pathname === '/inputs') return route.fulfill({ headers, path: inputs });
  const [, scope, name] = pathname.split('/');
  if (!imports[`${scope}/${name}`]) return route.fulfill({ status: 404, body: '' });
  const file = pathname.slice(`/${scope}/${name}`.length);
  return route.fulfill({ headers, path: join(folderOf(`${scope}/${name}`), file) });
});
await page.goto('http://localhost/');

// In the page: LiteRT.js makes the network, and what it hands to WebNN in a run is kept.
await page.evaluate(async () => {
  const kept = [];
  const dispatch = MLContext.prototype.dispatch;
  MLContext.prototype.dispatch = function (graph, given, taken) {
    kept.push({ context: this, graph, given, taken });
    return dispatch.call(this, graph, given, taken);
  };
  const lite = await import('@litertjs/core');
  await lite.loadLiteRt('/@litertjs/core/wasm/', { jspi: true });
  const model = await lite.loadAndCompile(
    '/network', { accelerator: 'webnn', webNNOptions: { devicePreference: 'cpu' } });
  if (!model.isFullyAccelerated) throw new Error('LiteRT.js leaves operators to WebAssembly');
  const arrays = { float32: Float32Array, uint8: Uint8Array, int32: Int32Array };
  const run = async () => {
    const bytes = await (await fetch('/inputs')).arrayBuffer();
    let offset = 0;
    const tensors = model.getInputDetails().map(({ dtype, shape }) => {
      const count = [...shape].reduce((product, length) => product * length, 1);
      const values = new arrays[dtype](bytes.slice(offset, offset + count * arrays[dtype].BYTES_PER_ELEMENT));
      offset += values.byteLength;
      return new lite.Tensor(values, [...shape]);
    });
    kept.length = 0;
    return await model.run(tensors);
  };
  const check = async () => {
    const outputs = [];
    for (const tensor of await run()) {
      const { buffer, byteOffset, byteLength } = await tensor.data();
      outputs.push(new Uint8Array(buffer, byteOffset, byteLength).toBase64());
    }
    if (kept.length !== 1) return { error: `LiteRT.js splits the network into ${kept.length} parts` };
    return { outputs };
  };
  const nothing = async (context) => {
    const builder = new MLGraphBuilder(context);
    const descriptor = { dataType: 'float32', shape: [1, 16] };
    const graph = await builder.build({ out: builder.identity(builder.input('in', descriptor)) });
    return { context, graph,
      given: { in: await context.createTensor({ ...descriptor, writable: true }) },
      taken: { out: await context.createTensor({ ...descriptor, readable: true }) } };
  };
  const timed = async ({ context, graph, given, taken }, runs) => {
    const smallest = Object.values(taken).sort(
      (a, b) => a.shape.reduce((x, y) => x * y, 1) - b.shape.reduce((x, y) => x * y, 1))[0];
    const start = performance.now();
    for (let i = 0; i < runs; ++i) dispatch.call(context, graph, given, taken);
    await context.readTensor(smallest);
    return (performance.now() - start) / runs * 1e6;
  };
  let idle;
  const timesOf = async (network, times, warmUp) => {
    const start = performance.now();
    do await timed(network, 1); while (performance.now() - start < warmUp);
    const taken = [];
    for (let i = 0; i < times; ++i) taken.push(await timed(network, 2));
    return taken;
  };
  const burst = async (times, warmUp) => {
    idle ??= await nothing(kept[0].context);
    return { network_ns: await timesOf(kept[0], times, warmUp),
      overhead_ns: await timesOf(idle, times, 0) };
  };
  globalThis.reef = { check, burst };
});

const commands = {
  async check(from, to) {
    inputs = from;
    const { error, outputs } = await page.evaluate(() => reef.check());
    if (error) throw new Error(error);
    writeFileSync(to, Buffer.concat(outputs.map((text) => Buffer.from(text, 'base64'))));
    return {};
  },
  burst: (times, warmUp) =>
    page.evaluate(([t, w]) => reef.burst(t, w), [Number(times), Number(warmUp)]),
};
const limit = 180_000;  // milliseconds

say({ version: `Chromium ${browser.version()}, ${liteRt}` });
for await (const line of createInterface({ input: process.stdin })) {
  const [name, ...words] = line.split('\t');
  const clock = setTimeout(() => fail(new Error(`no answer to ${name} in minutes`)), limit);
  say(await commands[name](...words));
  clearTimeout(clock);
}
await browser.close();
