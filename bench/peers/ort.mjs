// Runs a network on ONNX Runtime for reef_peers_bench, on command, so that its runs come in turn with
// other libraries'.
//
// node ort.mjs [NETWORK.onnx IDENTITY.onnx THREADS OPTIMISED.onnx]
//
// A line of JSON says the version, and without a network that is all. OPTIMISED.onnx is written: the
// graph after the optimiser. Then there is a line of JSON when the network is ready, and one for every
// line of input, whose words have tabs between them:
//   check IN OUT  runs the network once: its inputs are the bytes of the file IN, one behind the
//                 other, and its outputs are written to the file OUT in the same way
//   burst RUNS WARM_UP  runs that are not timed for WARM_UP milliseconds and one at least, RUNS timed
//                 ones, and as many of the network that gives its input back:
//                 {"network_ns": [...], "overhead_ns": [...]}
//   profile RUNS PREFIX  the least time of the nodes whose names begin with op3_, op4_, ..., by that
//                 number: {"operators_us": {"3": ...}}; PREFIX is for a file of the profiler's
// What fails ends the program with {"error": "..."}.
import { createRequire } from 'node:module';
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { basename, dirname, join } from 'node:path';

const say = (answer) => process.stdout.write(`${JSON.stringify(answer)}\n`);
process.on('uncaughtException', (error) => {
  say({ error: error.message.split('\n')[0] });
  process.exit(1);
});

const folder = process.env.REEF_ORT_NODE_MODULES;
const ort = createRequire(import.meta.url)(
  folder ? join(folder, 'onnxruntime-node') : 'onnxruntime-node');

say({ version: ort.env.versions.node ?? ort.env.versions.common });
const [network, identity, threads, optimised] = process.argv.slice(2);
if (network === undefined) process.exit(0);
const options = {
  intraOpNumThreads: Number(threads),
  interOpNumThreads: 1,
  executionMode: 'sequential',
  graphOptimizationLevel: 'all',
  logSeverityLevel: 3,
};

const arrays = {
  float32: Float32Array, uint8: Uint8Array, int8: Int8Array, int32: Int32Array,
  int64: BigInt64Array, bool: Uint8Array,
};

// Tensors over `bytes`, in the session's order.
function feeds(session, bytes) {
  let offset = 0;
  const tensors = {};
  for (const { name, type, shape } of session.inputMetadata) {
    const count = shape.reduce((product, length) => product * length, 1);
    const size = count * arrays[type].BYTES_PER_ELEMENT;
    const part = bytes.slice(offset, offset + size);
    tensors[name] = new ort.Tensor(type, new arrays[type](part), shape);
    offset += size;
  }
  return tensors;
}

function bytesOf(session) {
  return session.inputMetadata.reduce(
    (sum, { type, shape }) =>
      sum + shape.reduce((product, length) => product * length, arrays[type].BYTES_PER_ELEMENT), 0);
}

async function timed(session, inputs, runs, warmUp) {
  const times = [];
  const start = performance.now();
  do await session.run(inputs); while (performance.now() - start < warmUp);
  for (let i = 0; i < runs; ++i) {
    const begin = process.hrtime.bigint();
    await session.run(inputs);
    times.push(Number(process.hrtime.bigint() - begin));
  }
  return times;
}

// ONNX Runtime's threads look for work a while after a run: on few cores they would slow whoever runs
// next.
async function rest() {
  const step = 2;  // milliseconds
  for (let used = Infinity; Number(threads) > 1 && used > step * 1000 / 4;) {
    const before = process.cpuUsage();
    await new Promise((resume) => setTimeout(resume, step));
    used = process.cpuUsage(before).user;
  }
}

// The file of the optimised graph is written by a session of its own.
await (await ort.InferenceSession.create(network, { ...options, optimizedModelFilePath: optimised }))
  .release();
const session = await ort.InferenceSession.create(network, options);
const idle = await ort.InferenceSession.create(identity, options);
let inputs = feeds(session, new ArrayBuffer(bytesOf(session)));
let same = feeds(idle, new ArrayBuffer(bytesOf(idle)));

// The least times of a profile's nodes.
function nodeTimes(profile) {
  const times = new Map();
  for (const { cat, name, dur } of profile) {
    if (cat === 'Node' && name.endsWith('_kernel_time'))
      times.set(name, Math.min(dur, times.get(name) ?? Infinity));
  }
  return times;
}

const commands = {
  async profile(runs, prefix) {
    const profiled = await ort.InferenceSession.create(
      network, { ...options, enableProfiling: true, profileFilePrefix: prefix });
    for (let i = 0; i < Number(runs); ++i) await profiled.run(inputs);
    profiled.endProfiling();
    await profiled.release();
    const file = readdirSync(dirname(prefix)).find((name) => name.startsWith(basename(prefix)));
    const profile = JSON.parse(readFileSync(join(dirname(prefix), file), 'utf8'));
    const operators_us = {};
    for (const [name, time] of nodeTimes(profile)) {
      const index = /^op(\d+)_/.exec(name)?.[1];
      if (index !== undefined) operators_us[index] = (operators_us[index] ?? 0) + time;
    }
    return { operators_us };
  },
  async check(from, to) {
    const file = readFileSync(from);
    const bytes = file.buffer.slice(file.byteOffset, file.byteOffset + file.byteLength);
    inputs = feeds(session, bytes);
    same = feeds(idle, bytes);
    const outputs = await session.run(inputs);
    writeFileSync(to, Buffer.concat(session.outputNames.map((name) => {
      const { data } = outputs[name];
      return Buffer.from(data.buffer, data.byteOffset, data.byteLength);
    })));
    return {};
  },
  async burst(runs, warmUp) {
    const network_ns = await timed(session, inputs, Number(runs), Number(warmUp));
    await rest();
    return { network_ns, overhead_ns: await timed(idle, same, Number(runs), 0) };
  },
};

say({});
for await (const line of createInterface({ input: process.stdin })) {
  const [name, ...words] = line.split('\t');
  say(await commands[name](...words));
}
