// What a connector decides, and nothing of how a request comes in or an answer goes out: Node and the Worker share this file, and it
// imports nothing. The rules, and the numbers in brackets, are those of the connectors' contract (README.md of edge/connector).

const MAX_URL = 4096; // bytes of an address that goes along; it is never cut, for half an address is another page
const MAX_AGENT = 512;
const MAX_SAME = 4; // cookies of one name that are looked at
const MAX_ANSWER = 262_144; // bytes that are read of an answer
const KEEP_SEC = 604_800; // the longest that a door session may last; how long it does last the server judges
const RETRY_SEC = 5;

/**
 * Checks a configuration. Throws a TypeError that names what is wrong with it.
 *
 * @param {object} options
 * @param {string} options.roomId the room
 * @param {string} options.server the Queue Manager server's address as this program reaches it
 * @param {string} [options.publicKey] PUBLIC_API_KEY of the server; without it all visitors count as one client there
 * @param {'closed' | 'open'} [options.fail] who is served while the server does not answer: nobody, or everybody
 * @param {number} [options.timeoutMs] how long one request may wait for the server in all, 1 to 30,000
 * @param {string} options.closedPage what a person is shown while nobody is served
 */
export function configure({ roomId, server, publicKey = '', fail = 'closed', timeoutMs = 2000, closedPage }) {
  const wrong = (what) => new TypeError(`qm-connector: ${what}`);
  if (typeof roomId !== 'string' || !/^[a-z0-9][a-z0-9-]{1,62}[a-z0-9]$/.test(roomId)) throw wrong('roomId is missing or no room id');
  if (!isAddress(server) || /[?#]/.test(server)) throw wrong('server is missing or no http or https address');
  if (typeof publicKey !== 'string' || !/^[\x21-\x7e]*$/.test(publicKey)) throw wrong('publicKey is no key');
  if (fail !== 'closed' && fail !== 'open') throw wrong('fail is neither "closed" nor "open"');
  if (!(timeoutMs >= 1 && timeoutMs <= 30_000)) throw wrong('timeoutMs is not 1 to 30000');
  return { roomId, server: server.replace(/\/+$/, ''), publicKey, fail, timeoutMs: Math.ceil(timeoutMs), closedPage };
}

/**
 * Decides about one request. It never throws: whatever goes wrong is a decision, too.
 *
 * @param {ReturnType<typeof configure>} config
 * @param {object} visit what the request says; "" where it says nothing
 * @param {string} visit.method
 * @param {string} visit.url the whole address as the visitor's browser asked for it, byte for byte, in ASCII
 * @param {string} visit.address the visitor's IP address
 * @param {string} visit.cookie the header Cookie, and likewise:
 * @param {string} visit.accept
 * @param {string} visit.mode Sec-Fetch-Mode
 * @param {string} visit.agent User-Agent
 * @returns {Promise<{serve: boolean, decision: string, reason: string, status: number, headers: [string, string][], body: string}>}
 *   serve: the site answers, with these headers beside its own. Otherwise this is the answer.
 */
export async function decide(config, visit) {
  if (visit.method === 'OPTIONS') return serve('pass', 'method', []);
  const head = visit.method === 'HEAD';
  const { url, code, coded } = withoutCode(visit.url);
  const keys = cookiesOf(visit.cookie, `qm_dk_${config.roomId}`);
  const tokens = head ? [] : cookiesOf(visit.cookie, `qm_${config.roomId}`);
  const said = await ask(config, visit, { url, code: head ? '' : code, keys, tokens });
  const { decision, reason } = said;
  const cookies = head ? [] : cookiesFor(config, visit.url, said, keys[0], tokens[0]);
  if (!coded && (decision === 'pass' || decision === 'open')) return serve(decision, reason, cookies);

  const answer = (status, body, ...more) => ({
    serve: false,
    decision,
    reason,
    status,
    headers: [says(decision, reason), ...cookies, ...OWN, ...more],
    body: head ? '' : body,
  });
  const redirect = (status, location) => answer(status, '', ['Location', location]);
  const refuse = (status, type, body) => answer(status, body, ['Content-Type', `${type}; charset=utf-8`], ['Retry-After', `${RETRY_SEC}`]);
  const json = (status, body) => refuse(status, 'application/json', JSON.stringify(body));
  const page = isPage(visit);
  if (decision === 'queue') {
    const waitingRoomUrl = isAddress(said.waitingRoomUrl) ? said.waitingRoomUrl : `${config.server}/w/${config.roomId}`;
    if (page) return redirect(visit.method === 'POST' ? 303 : 302, withReturn(waitingRoomUrl, url));
    return json(429, { error: 'You have to wait in line first.', code: 'queued', waitingRoomUrl });
  }
  if (coded) return redirect(head || visit.method === 'GET' ? 302 : 307, url);
  if (page) return refuse(503, 'text/html', config.closedPage);
  return json(503, { error: 'The waiting room does not answer. Please try again.', code: 'queue_unavailable' });
}

const OWN = [
  ['Cache-Control', 'no-store'],
  ['Vary', 'Cookie'],
  ['Referrer-Policy', 'no-referrer'],
];
const says = (decision, reason) => ['X-QM-Decision', `${decision}; reason=${reason}`];
const serve = (decision, reason, cookies) => ({ serve: true, decision, reason, status: 0, headers: [says(decision, reason), ...cookies], body: '' });

// Asking (4, 5).

async function ask(config, visit, { url, code, keys, tokens }) {
  const failed = (reason) => ({ decision: config.fail, reason });
  const query = [`roomId=${config.roomId}`];
  const add = (name, value) => value && query.push(`${name}=${encodeURIComponent(value)}`);
  if (url.length <= MAX_URL) add('url', url);
  add('token', tokens[0]);
  add('code', code);
  const headers = { Accept: 'application/json' };
  if (keys.length > 0) headers['X-QM-Session'] = keys[0];
  const more = [...keys.slice(1).map((v) => `qm_dk_${config.roomId}=${v}`), ...tokens.slice(1).map((v) => `qm_${config.roomId}=${v}`)];
  if (more.length > 0) headers.Cookie = more.join('; ');
  const ip = config.publicKey && plainAddress(visit.address);
  if (ip) {
    headers.Authorization = `Bearer ${config.publicKey}`;
    add('ip', ip);
    add('agent', visit.agent.slice(0, MAX_AGENT)); // a header's character is a byte
  }

  const signal = AbortSignal.timeout(config.timeoutMs); // for both questions together
  let status, text;
  try {
    for (const path of ['/api/v1/check', '/api/check']) {
      const response = await fetch(`${config.server}${path}?${query.join('&')}`, { headers, signal, redirect: 'manual' });
      status = response.status;
      if (status === 200) text = await textOf(response);
      else await response.body?.cancel();
      if (status !== 404) break;
    }
  } catch {
    return failed(signal.aborted ? 'timeout' : 'unreachable');
  }
  if (status !== 200) return failed(`status_${status}`);
  let said;
  try {
    said = JSON.parse(text);
  } catch {
    return failed('bad_answer');
  }
  if (said?.action !== 'pass' && said?.action !== 'queue') return failed('bad_answer');
  const reason = typeof said.reason === 'string' && /^[a-z0-9_]{1,64}$/.test(said.reason) ? said.reason : 'unspecified';
  const { waitingRoomUrl, clearToken, sess, token } = said;
  return { decision: said.action === 'pass' && reason === 'no_room' ? 'open' : said.action, reason, waitingRoomUrl, clearToken, sess, token };
}

// textOf reads an answer; "" where it is longer than any answer is.
async function textOf(response) {
  const decoder = new TextDecoder();
  const reader = response.body.getReader();
  let text = '';
  for (let size = 0; ; ) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    size += value.byteLength;
    if (size > MAX_ANSWER) {
      await reader.cancel();
      return '';
    }
    text += decoder.decode(value, { stream: true });
  }
}

// Addresses (2, 7).

function withoutCode(url) {
  const mark = url.indexOf('?');
  const pairs = mark < 0 ? [] : url.slice(mark + 1).split('&');
  const codes = pairs.filter((pair) => pair.startsWith('qm_code='));
  if (codes.length === 0) return { url, code: '', coded: false };
  const kept = pairs.filter((pair) => !pair.startsWith('qm_code='));
  const code = codes.at(-1).slice('qm_code='.length);
  return { url: url.slice(0, mark) + (kept.length > 0 ? `?${kept.join('&')}` : ''), code: isValue(code) ? code : '', coded: true };
}

function withReturn(to, url) {
  if (url.length > MAX_URL) return to;
  const mark = to.indexOf('#');
  const [before, fragment] = mark < 0 ? [to, ''] : [to.slice(0, mark), to.slice(mark)];
  return `${before}${before.includes('?') ? '&' : '?'}qm_return=${encodeURIComponent(url)}${fragment}`;
}

// isAddress: an absolute http or https address that a header may hold.
function isAddress(text) {
  if (typeof text !== 'string' || !/^https?:\/\/[^/?#\\]/i.test(text) || !/^[\x21-\x7e]+$/.test(text)) return false;
  try {
    return Boolean(new URL(text));
  } catch {
    return false;
  }
}

/** An IP address without port, zone, brackets and IPv6 dress on an IPv4 one; "" for what is none. */
export function plainAddress(text) {
  const bare = text
    .replace(/^\[([^\]]*)\](:\d+)?$/, '$1')
    .replace(/^(\d+\.\d+\.\d+\.\d+):\d+$/, '$1')
    .replace(/%.*$/, '')
    .replace(/^::ffff:(?=\d+\.)/i, '');
  if (/^\d{1,3}(\.\d{1,3}){3}$/.test(bare)) return bare.split('.').every((n) => Number(n) < 256) ? bare : '';
  return /^[0-9a-f:.]*:[0-9a-f:.]*$/i.test(bare) && isAddress(`http://[${bare}]/`) ? bare : '';
}

// Credentials and cookies (3, 6).

function isValue(text) {
  return typeof text === 'string' && /^[A-Za-z0-9._-]{1,1024}$/.test(text) && text !== 'null' && text !== 'undefined';
}

function cookiesOf(header, name) {
  const found = [];
  for (const pair of header.split(';')) {
    const cookie = pair.trim();
    if (!cookie.startsWith(`${name}=`)) continue;
    const value = cookie.slice(name.length + 1).replace(/^"(.*)"$/, '$1');
    if (isValue(value) && !found.includes(value) && found.length < MAX_SAME) found.push(value);
  }
  return found;
}

function cookiesFor({ roomId }, url, { clearToken, sess, token }, key, shown) {
  const set = new Map();
  if (clearToken === true) set.set(`qm_dk_${roomId}`, '').set(`qm_${roomId}`, '');
  if (isValue(sess) && sess !== key) set.set(`qm_dk_${roomId}`, sess);
  if (isValue(token) && token !== shown) set.set(`qm_${roomId}`, token);
  const secure = /^https:/i.test(url) ? '; Secure' : '';
  return [...set].map(([name, value]) => [
    'Set-Cookie',
    `${name}=${value}; Path=/; Max-Age=${value ? KEEP_SEC : 0}; HttpOnly${secure}; SameSite=Lax`,
  ]);
}

// isPage tells what a person looks at from what a script asks for, which could not follow a redirect to another origin (7).
function isPage({ method, accept, mode }) {
  if (method !== 'GET' && method !== 'HEAD' && method !== 'POST') return false;
  return mode ? mode === 'navigate' : !accept || /text\/html/i.test(accept);
}
