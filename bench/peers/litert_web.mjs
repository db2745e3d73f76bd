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
//   burst RUNS WARM_UP  runs that are not timed for WARM_UP milliseconds and one at least, RUNS timed
//                 ones behind one another, and as many of a network that does nothing, both with the
//                 wait for the last one's output: {"network_ns": [...], "overhead_ns": [...]}
// What fails ends the program with {"error": "..."}.
import { createRequire } from 'node:module';
import { readFileSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';

const say = (answer) => process.stdout.write(`${JSON.stringify(answer)}\n`);
const fail = (error) => {
  say({ error: error.message.split('\n')[0] });
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
const named = process.env.REEF_CHROMIUM;
folderOf('playwright-core');
const liteRt = `LiteRT.js ${versionOf('@litertjs/core')}`;
say({ version: `${named ?? `Chromium ${versionOf(chromiumPackage)}`}, ${liteRt}` });
const [network, dump] = process.argv.slice(2);
if (network === undefined) process.exit(0);

const { chromium } = require('playwright-core');
const packed = async () =>
  (await import(pathToFileURL(require.resolve(chromiumPackage)))).default.executablePath();
const browser = await chromium.launch({
  executablePath: named ?? await packed(),
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
  const burst = async (runs, warmUp) => {
    idle ??= await nothing(kept[0].context);
    const start = performance.now();
    do await timed(kept[0], 1); while (performance.now() - start < warmUp);
    const network_ns = [await timed(kept[0], runs)];
    await timed(idle, 1);
    return { network_ns, overhead_ns: [await timed(idle, runs)] };
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
  burst: (runs, warmUp) =>
    page.evaluate(([r, w]) => reef.burst(r, w), [Number(runs), Number(warmUp)]),
};

say({});
for await (const line of createInterface({ input: process.stdin })) {
  const [name, ...words] = line.split('\t');
  say(await commands[name](...words));
}
await browser.close();
