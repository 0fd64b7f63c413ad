// The waiting room's connector for Cloudflare Workers: a module worker on the site's own route. Its variables are in wrangler.toml.
import closedPage from './closed.html';
import { configure, decide } from './decide.mjs';

let known = { of: null, config: null };

// configOf reads the Worker's variables. They do not change while a Worker runs, so they are read once.
function configOf(env) {
  if (known.of !== env) {
    const { QM_ROOM_ID, QM_SERVER, QM_PUBLIC_KEY, QM_FAIL, QM_TIMEOUT_MS } = env;
    known = {
      of: env,
      config: configure({
        roomId: QM_ROOM_ID,
        server: QM_SERVER,
        publicKey: QM_PUBLIC_KEY || undefined,
        fail: QM_FAIL || undefined,
        timeoutMs: QM_TIMEOUT_MS ? Number(QM_TIMEOUT_MS) : undefined,
        closedPage,
      }),
    };
  }
  return known.config;
}

export default {
  /**
   * There is no ctx.passThroughOnException() here: it would serve everybody when this fails. What happens then is QM_FAIL's to say,
   * and a variable that is missing or wrong serves nobody.
   */
  async fetch(request, env) {
    let config;
    try {
      config = configOf(env);
    } catch (e) {
      console.error(e.message);
      return new Response(e.message, { status: 503, headers: { 'Cache-Control': 'no-store', 'X-QM-Decision': 'closed; reason=misconfigured' } });
    }
    const header = (name) => request.headers.get(name) ?? '';
    const result = await decide(config, {
      method: request.method,
      url: request.url.replace(/#.*$/, ''),
      address: header('CF-Connecting-IP'),
      cookie: header('Cookie'),
      accept: header('Accept'),
      mode: header('Sec-Fetch-Mode'),
      agent: header('User-Agent'),
    });
    if (result.decision === 'open' || result.decision === 'closed') {
      console.warn(`qm-connector: room ${config.roomId}: ${result.decision}: ${result.reason}`);
    }
    if (!result.serve) {
      return new Response(result.body || null, { status: result.status, headers: result.headers });
    }
    const answer = await fetch(request);
    const served = new Response(answer.body, answer);
    for (const [name, value] of result.headers) {
      if (name === 'Set-Cookie') served.headers.append(name, value);
      else served.headers.set(name, value);
    }
    return served;
  },
};
