// The waiting room's connector for Node 18 and newer: Express, and whatever else is made of node:http.
import { readFileSync } from 'node:fs';
import { BlockList, isIPv6 } from 'node:net';
import { configure, decide, plainAddress } from './decide.mjs';

/**
 * Makes a connector. Throws a TypeError when an option is missing or wrong, so that a site does not start without its door.
 *
 * @param {object} options beside those of configure (decide.mjs):
 * @param {string} [options.origin] the site's own origin, such as https://shop.example; without it the request's Host header says it
 * @param {string[]} [options.trustedProxies] addresses and networks (CIDR) of the proxies in front of this program. Only from these
 *   are X-Forwarded-For and X-Forwarded-Proto believed
 * @param {(line: string) => void} [options.log] hears of each visitor who was served or refused without the server's word
 */
export function createConnector({ origin, trustedProxies = [], log = console.warn, ...options }) {
  const config = configure({ closedPage: readFileSync(new URL('closed.html', import.meta.url), 'utf8'), ...options });
  if (origin !== undefined && !/^https?:\/\/[A-Za-z0-9._:[\]-]+$/.test(origin)) {
    throw new TypeError('qm-connector: origin is not like https://shop.example');
  }
  const trusted = networks(trustedProxies);

  /**
   * Decides about a request. true: the site should answer it. false: it has been answered.
   *
   * @param {import('node:http').IncomingMessage} req
   * @param {import('node:http').ServerResponse} res
   * @returns {Promise<boolean>}
   */
  async function handle(req, res) {
    const result = await decide(config, visitOf(req, origin, trusted));
    if (result.decision === 'open' || result.decision === 'closed') {
      log(`qm-connector: room ${config.roomId}: ${result.decision}: ${result.reason}`);
    }
    if (!result.serve) res.statusCode = result.status;
    for (const [name, value] of result.headers) {
      // A cookie is added to those that the site has set so far; everything else replaces.
      if (name === 'Set-Cookie') res.setHeader(name, [res.getHeader(name) ?? [], value].flat());
      else res.setHeader(name, value);
    }
    if (!result.serve) res.end(result.body);
    return result.serve;
  }

  /** The connector as Express middleware. Put it before whatever it should guard. */
  function express() {
    return (req, res, next) => {
      handle(req, res).then((serve) => serve && next(), next);
    };
  }

  return { handle, express };
}

function visitOf(req, origin, trusted) {
  const header = (name) => {
    const value = req.headers[name];
    return Array.isArray(value) ? value.join(', ') : value ?? '';
  };
  const { address, proxied } = clientOf(req.socket.remoteAddress ?? '', header('x-forwarded-for'), trusted);
  return {
    method: req.method,
    url: (origin ?? originOf(req, proxied && header('x-forwarded-proto'))) + targetOf(req.originalUrl ?? req.url),
    address,
    cookie: header('cookie'),
    accept: header('accept'),
    mode: header('sec-fetch-mode'),
    agent: header('user-agent'),
  };
}

function originOf(req, forwarded) {
  const last = forwarded && forwarded.split(',').at(-1).trim().toLowerCase();
  const scheme = last === 'https' || last === 'http' ? last : req.socket.encrypted ? 'https' : 'http';
  const host = req.headers[':authority'] ?? req.headers.host ?? '';
  // What is no host makes an address that no rule knows, and so it queues.
  return `${scheme}://${/^[A-Za-z0-9._:[\]-]+$/.test(host) ? host : 'invalid'}`;
}

// targetOf is the path and query as the browser sent them, even where a client has put a whole address there. Bytes beyond ASCII, which no
// browser sends, are escaped.
function targetOf(target) {
  const path = target.replace(/^https?:\/\/[^/?#]*/i, '');
  return (path.startsWith('/') ? path : `/${path}`).replace(/[^\x21-\x7e]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`);
}

function networks(list) {
  const trusted = new BlockList();
  for (const entry of list) {
    const [address, bits] = String(entry).split('/');
    const plain = plainAddress(address);
    const family = isIPv6(plain) ? 'ipv6' : 'ipv4';
    const most = family === 'ipv6' ? 128 : 32;
    if (!plain || (bits !== undefined && !(/^\d{1,3}$/.test(bits) && Number(bits) <= most))) {
      throw new TypeError(`qm-connector: trustedProxies has "${entry}", which is no address and no network`);
    }
    trusted.addSubnet(plain, bits === undefined ? most : Number(bits), family);
  }
  return trusted;
}

// clientOf is the right-most address that is not itself trusted; "" where that is no address.
function clientOf(remote, forwarded, trusted) {
  const isTrusted = (address) => address !== '' && trusted.check(address, isIPv6(address) ? 'ipv6' : 'ipv4');
  let address = plainAddress(remote);
  const proxied = isTrusted(address);
  for (const hop of forwarded.split(',').reverse()) {
    if (!isTrusted(address) || hop.trim() === '') break;
    address = plainAddress(hop.trim());
  }
  return { address, proxied };
}
