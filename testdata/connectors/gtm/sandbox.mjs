// Runs the code of a Tag Manager template as Tag Manager does: a function of data without any global but require, whose functions
// hold to the template's permissions. Reads {code, permissions, data, page, fails, stored} as JSON from standard input; writes what
// the template did: {calls: [[name, argument]], error}.
import vm from "node:vm";

let input = "";
for await (const chunk of process.stdin) input += chunk;
const { code, permissions, data, page, fails = [], stored = [] } = JSON.parse(input);

const calls = [];
const storage = new Map(stored.map((key) => [key, true]));

// The parameters of a permission, as plain values.
const plain = (v) => (v.type === 2 ? v.listItem.map(plain) : v.type === 8 ? v.boolean : v.string);
const granted = {};
for (const { instance } of permissions) granted[instance.key.publicId] = Object.fromEntries(instance.param.map((p) => [p.key, plain(p.value)]));
function need(permission) {
  if (!granted[permission]) throw new Error(`no permission ${permission}`);
  return granted[permission];
}

// A match pattern: https, a host that may begin with "*." or be "*", a path that may hold "*".
function matches(pattern, address) {
  const [, host, path] = /^https:\/\/([^/]+)(\/.*)$/.exec(pattern);
  const url = new URL(address);
  if (url.protocol !== "https:" || url.username) return false;
  const hosts = host === "*" || (host.startsWith("*.") ? url.hostname.endsWith(host.slice(1)) : url.hostname === host);
  const shape = new RegExp("^" + path.split("*").map((s) => s.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join(".*") + "$");
  return hosts && shape.test(url.pathname + url.search);
}
function allow(urls, address) {
  if (typeof address !== "string" || !urls.some((p) => matches(p, address))) throw new Error(`not allowed: ${address}`);
}
const later = []; // what the browser calls back
function load(name, address, onSuccess, onFailure) {
  calls.push([name, address]);
  later.push(fails.includes(name) ? onFailure : onSuccess);
}

const api = {
  injectScript(address, onSuccess, onFailure, cacheToken) {
    allow(need("inject_script").urls, address);
    if (cacheToken !== undefined && typeof cacheToken !== "string") throw new Error("a cache token is a string");
    load("injectScript", address, onSuccess, onFailure);
  },
  sendPixel(address, onSuccess, onFailure) {
    const p = need("send_pixel");
    if (p.allowedUrls !== "any") allow(p.urls, address);
    load("sendPixel", address, onSuccess, onFailure);
  },
  getUrl(part) {
    const p = need("get_url");
    if (p.urlParts !== "any" && !p[part]) throw new Error(`no permission for the ${part}`);
    const url = new URL(page);
    return { protocol: url.protocol.slice(0, -1), host: url.hostname, port: url.port }[part];
  },
  encodeUriComponent: encodeURIComponent,
  makeString: (v) => (v === null || v === undefined ? "" : "" + v),
  templateStorage: {
    getItem: (key) => (need("access_template_storage"), storage.get(key)),
    setItem: (key, value) => (need("access_template_storage"), storage.set(key, value)),
  },
};
function require(name) {
  if (!Object.hasOwn(api, name)) throw new Error(`Tag Manager has no ${name} here`);
  return api[name];
}

let error = "";
try {
  const context = vm.createContext(Object.create(null));
  // What a context of node has beyond the language, and what the sandbox takes out of it.
  for (const name of ["console", "eval", "Function", "String", "Number", "RegExp", "Date", "Promise", "Symbol", "Reflect", "Proxy", "JSON", "Math", "Object", "Array", "encodeURIComponent", "WebAssembly", "globalThis"]) {
    vm.runInContext(`delete this.${name}`, context);
  }
  const run = vm.compileFunction('"use strict";\n' + code, ["data", "require"], { parsingContext: context });
  run({
    ...data,
    gtmOnSuccess: () => calls.push(["success", ""]),
    gtmOnFailure: () => calls.push(["failure", ""]),
  }, require);
  while (later.length) later.shift()?.();
} catch (e) {
  error = String(e);
}
process.stdout.write(JSON.stringify({ calls, error }));
