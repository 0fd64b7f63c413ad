import { readFileSync } from 'node:fs';

/** What this connector is called, and its version. */
export const { name, version } = JSON.parse(readFileSync(new URL('connector.json', import.meta.url), 'utf8'));

/**
 * Runs the server's install check (GET /api/v1/verify). Throws an Error with a sentence for people when the server cannot be
 * asked or refuses to answer.
 *
 * @param {{base: string, room: string, url?: string, key?: string, timeoutMs?: number}} o
 * @returns {Promise<{ok: boolean, checks: {id: string, status: string, title: string, detail?: string, fix?: string}[]}>}
 */
export async function verify({ base, room, url, key, timeoutMs = 10_000 }) {
  let address;
  try {
    address = new URL(base.replace(/\/+$/, '') + '/api/v1/verify');
  } catch {
    throw new Error(`"${base}" is no address`);
  }
  address.searchParams.set('roomId', room);
  address.searchParams.set('connector', name);
  address.searchParams.set('version', version);
  if (url) address.searchParams.set('url', url);
  let response, body;
  try {
    response = await fetch(address, {
      headers: key ? { Authorization: `Bearer ${key}` } : {},
      redirect: 'error',
      signal: AbortSignal.timeout(timeoutMs),
    });
    body = await response.json();
  } catch (e) {
    if (response) throw new Error(`${address.origin} answered ${response.status}, but no report: is it a Queue Manager server?`);
    const why = e.name === 'TimeoutError' ? `no answer in ${timeoutMs} ms` : e.cause?.message || e.message;
    throw new Error(`${address.origin} could not be asked: ${why}`);
  }
  if (typeof body?.ok !== 'boolean' || !Array.isArray(body.checks)) {
    const said = body?.error ? `: ${body.error}${body.code ? ` (${body.code})` : ''}` : '';
    throw new Error(`${address.origin} answered ${response.status} and no report${said}`);
  }
  return body;
}
