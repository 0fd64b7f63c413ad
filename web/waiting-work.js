// A worker: for each part, the first number with which SHA-256 of
// "stamp.part.number" begins with enough zero bits (package access/token).
// SHA-256 is written out here because crypto.subtle answers by promises, some
// ten times slower for short texts, and is not there at all without https.

const root = (n, power) => {
  // the first 32 bits of the fraction of a root
  const r = n ** (1 / power);
  return ((r - Math.floor(r)) * 2 ** 32) | 0;
};
const primes = [];
for (let n = 2; primes.length < 64; n++) if (primes.every((p) => n % p)) primes.push(n);
const K = Int32Array.from(primes, (p) => root(p, 3));
const H = Int32Array.from(primes.slice(0, 8), (p) => root(p, 2));
const W = new Int32Array(64);

// compress takes one block of 16 words in W into the state h.
function compress(h) {
  for (let i = 16; i < 64; i++) {
    const a = W[i - 15];
    const b = W[i - 2];
    W[i] = (W[i - 16] + W[i - 7] + (((a >>> 7) | (a << 25)) ^ ((a >>> 18) | (a << 14)) ^ (a >>> 3)) + (((b >>> 17) | (b << 15)) ^ ((b >>> 19) | (b << 13)) ^ (b >>> 10))) | 0;
  }
  let [a, b, c, d, e, f, g, k] = h;
  for (let i = 0; i < 64; i++) {
    const s = (((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7))) + ((e & f) ^ (~e & g)) + k + K[i] + W[i];
    const t = (((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10))) + ((a & b) ^ (a & c) ^ (b & c));
    k = g;
    g = f;
    f = e;
    e = (d + s) | 0;
    d = c;
    c = b;
    b = a;
    a = (s + t) | 0;
  }
  h[0] += a;
  h[1] += b;
  h[2] += c;
  h[3] += d;
  h[4] += e;
  h[5] += f;
  h[6] += g;
  h[7] += k;
}

// first is the first word of the digest of a text of plain letters.
function first(text) {
  const h = H.slice();
  const length = text.length;
  const blocks = (length + 72) >> 6;
  for (let block = 0; block < blocks; block++) {
    W.fill(0, 0, 16);
    for (let i = block * 64; i < block * 64 + 64; i++) {
      const byte = i < length ? text.charCodeAt(i) : i === length ? 128 : 0;
      W[(i & 63) >> 2] |= byte << (24 - 8 * (i & 3));
    }
    if (block === blocks - 1) W[15] = length * 8;
    compress(h);
  }
  return h[0];
}

onmessage = ({ data: { stamp, parts, bits } }) => {
  const found = [];
  for (let part = 0; part < parts; part++) {
    let n = 0;
    while (first(`${stamp}.${part}.${n.toString(36)}`) >>> (32 - bits)) n++;
    found.push(n.toString(36));
  }
  postMessage(found.join("."));
};
