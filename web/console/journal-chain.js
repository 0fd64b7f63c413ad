// The journal's hash chain, checked here and not taken on trust: each record's
// hash is SHA-256 over the hash before it and its own fields (journal/chain.go).

import { lines } from "./feed.js";

const text = new TextEncoder();

function field(bytes) {
  const out = new Uint8Array(4 + bytes.length);
  new DataView(out.buffer).setUint32(0, bytes.length);
  out.set(bytes, 4);
  return out;
}
function number(n) {
  const out = new Uint8Array(8);
  new DataView(out.buffer).setBigInt64(0, n);
  return field(out);
}
// An instant such as 2026-01-02T03:04:05.000006Z, in microseconds: more than a Date holds.
function micros(at) {
  const fraction = /\.(\d+)Z$/.exec(at)?.[1] || "";
  return BigInt(Date.parse(at.replace(/\.\d+Z$/, "Z"))) * 1000n + BigInt(fraction.padEnd(6, "0").slice(0, 6));
}
const hex = (bytes) => [...bytes].map((b) => b.toString(16).padStart(2, "0")).join("");

// checkChain reads a room's whole journal and answers {count, head, broken}: broken is the number of the first record that does not follow
// from the one before, or null. progress is told how many were read.
export async function checkChain(path, progress) {
  let before = new Uint8Array(32);
  let count = 0;
  for await (const line of lines(path + "/journal?format=ndjson")) {
    const r = JSON.parse(line);
    // The body counts as it is stored, letter by letter.
    const body = line.slice(line.indexOf(',"body":') + 8, line.lastIndexOf(',"hash":"'));
    const parts = [before, field(text.encode(r.stream)), number(BigInt(r.seq)), number(micros(r.at)), field(text.encode(r.kind)), number(BigInt(r.version)), field(text.encode(r.actor)), field(text.encode(r.cause)), field(text.encode(body))];
    const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", await new Blob(parts).arrayBuffer()));
    count++;
    if (r.seq !== count || hex(hash) !== r.hash) return { count, head: hex(before), broken: r.seq };
    before = hash;
    if (count % 500 === 0) progress(count);
  }
  return { count, head: hex(before), broken: null };
}
