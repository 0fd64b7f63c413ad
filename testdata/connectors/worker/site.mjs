// A site behind the Worker connector, in workerd: node site.mjs CONNECTOR. CONNECTOR is the folder of the unpacked connector; QM_MINIFLARE
// that of miniflare; QM_BINDINGS the Worker's variables as JSON. What a browser asks for is in the header MF-Original-URL.
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';

const [folder] = process.argv.slice(2);
const { Miniflare } = createRequire(import.meta.url)(process.env.QM_MINIFLARE);
const source = (name) => ({ contents: readFileSync(`${folder}/${name}`, 'utf8'), path: name });

// A case brings the Worker's variables in a header, and its site answers with what has reached it: Workers know no other way to a
// site than fetch, and the cases' site has an address that does not exist.
const cases = `
import worker from './worker.mjs';
const network = globalThis.fetch;
globalThis.fetch = async (resource, init) => {
  if (!(resource instanceof Request) || !resource.headers.has('X-Test-Site')) return network(resource, init);
  const body = { reached: true, method: resource.method, target: new URL(resource.url).pathname + new URL(resource.url).search, cookie: resource.headers.get('Cookie') ?? '' };
  return new Response(resource.method === 'HEAD' ? null : JSON.stringify(body), { headers: { 'Content-Type': 'application/json', 'Set-Cookie': 'site=1' } });
};
export default {
  fetch(request, env, ctx) {
    const options = request.headers.get('X-Test-Options');
    return worker.fetch(request, options ? JSON.parse(options) : env, ctx);
  },
};`;
const mf = new Miniflare({
  host: '127.0.0.1',
  port: 0,
  compatibilityDate: '2025-01-01',
  bindings: JSON.parse(process.env.QM_BINDINGS ?? '{}'),
  handleRuntimeStdio: (out, err) => (out.pipe(process.stdout), err.pipe(process.stdout)),
  modules: [
    { type: 'ESModule', path: 'cases.mjs', contents: cases },
    { type: 'ESModule', ...source('worker.mjs') },
    { type: 'ESModule', ...source('decide.mjs') },
    { type: 'Text', ...source('closed.html') },
  ],
});
console.log(`ready ${(await mf.ready).origin}`);
process.on('SIGTERM', () => mf.dispose().then(() => process.exit(0)));
