// SPDX-License-Identifier: MIT OR Apache-2.0
// Loads a trace into Perfetto's trace processor (WebAssembly) and prints the answer to each SQL query as a line of JSON.
// usage: node query.js FOLDER TRACE QUERY...    (FOLDER: engine_bundle.js and trace_processor*.wasm of Perfetto's page)
"use strict";
const fs = require("fs");
const path = require("path");
const [folder, trace, ...queries] = process.argv.slice(2);
const { exit, stdout, stderr } = process;
const end = exit.bind(process);

// The engine is a worker of a page: it fetches its WebAssembly, and answers messages.
const wasm = url => fs.readFileSync(path.join(folder, path.basename(String(url))));
class Request {
	open(method, url) {
		this.url = url;
	}
	send() {
		this.status = 200;
		this.response = new Uint8Array(wasm(this.url)).buffer;
	}
}
Object.assign(globalThis, {
	XMLHttpRequest: Request,
	self: globalThis,
	WorkerGlobalScope: class {},
	importScripts: () => {},
	location: { href: "http://local/engine_bundle.js" },
	process: undefined,
});
console.log = console.warn = () => {};
require(path.resolve(folder, "engine_bundle.js"));
const { port1, port2 } = new MessageChannel();
self.onmessage({ data: port2 });

// Protocol buffers: TraceProcessorRpcStream of Perfetto's trace_processor.proto.
function varint(value) {
	const bytes = [];
	for (; value > 127; value = Math.floor(value / 128))
		bytes.push((value % 128) | 128);
	return Buffer.from([...bytes, value]);
}
const bytesField = (id, bytes) => Buffer.concat([varint(id * 8 + 2), varint(bytes.length), bytes]);
const numberField = (id, value) => Buffer.concat([varint(id * 8), varint(value)]);

function* varints(bytes) {
	let value = 0n, shift = 0n;
	for (const byte of bytes) {
		value |= BigInt(byte & 127) << shift;
		shift += 7n;
		if (byte < 128) {
			yield Number(BigInt.asIntN(64, value));
			value = shift = 0n;
		}
	}
}

function* fields(bytes) {
	let at = 0;
	const next = () => {
		const start = at;
		while (bytes[at++] > 127);
		return [...varints(bytes.subarray(start, at))][0];
	};
	while (at < bytes.length) {
		const key = next();
		const kind = key & 7;
		const length = kind === 0 ? 0 : kind === 1 ? 8 : kind === 5 ? 4 : next();
		const value = kind === 0 ? next() : bytes.subarray(at, at + length);
		at += length;
		yield [key >> 3, value];
	}
}

let sequence = 0;
const answers = [];
let wake = () => {};
port1.onmessage = event => {
	answers.push(Buffer.from(event.data));
	wake();
};
const APPEND = 1, FINALIZE = 2, QUERY = 3;

async function call(method, argument = Buffer.alloc(0)) {
	const request = [numberField(1, sequence++), numberField(2, method), argument];
	port1.postMessage(new Uint8Array(bytesField(1, Buffer.concat(request))));
	while (!answers.length)
		await new Promise(resolve => (wake = resolve));
	return answers.shift();
}

function rows(reply) {
	const columns = [], cells = [], types = [], texts = [], numbers = [], floats = [];
	let error = null;
	const messages = [...fields(reply)].flatMap(([, rpc]) => [...fields(rpc)]);
	for (const [id, result] of messages) {
		if (id !== 203)
			continue;
		for (const [part, value] of fields(result)) {
			if (part === 1)
				columns.push(value.toString());
			else if (part === 2)
				error = value.toString();
			else if (part === 3)
				for (const [kind, batch] of fields(value)) {
					if (kind === 1)
						types.push(...batch);
					else if (kind === 2)
						numbers.push(...varints(batch));
					else if (kind === 3)
						for (let at = 0; at < batch.length; at += 8)
							floats.push(batch.readDoubleLE(at));
					else if (kind === 5)
						texts.push(...batch.toString().split("\0").slice(0, -1));
				}
		}
	}
	for (const type of types)
		cells.push(type === 1 ? null : (type === 2 ? numbers : type === 3 ? floats : texts).shift());
	const table = [];
	while (cells.length)
		table.push(cells.splice(0, columns.length));
	return { error, rows: table };
}

(async () => {
	setTimeout(() => {
		stderr.write("the trace processor does not answer\n");
		end(3);
	}, 300000);
	// It has made itself when it was loaded, but for what waits for the next turn.
	await new Promise(resolve => setTimeout(resolve, 100));
	await call(APPEND, bytesField(101, fs.readFileSync(trace)));
	await call(FINALIZE);
	for (const query of queries) {
		const answer = rows(await call(QUERY, bytesField(103, bytesField(1, Buffer.from(query)))));
		stdout.write(JSON.stringify(answer) + "\n");
	}
	end(0);
})();
