// What the console knows: the session, the API behind it, and the rooms as the
// frames of /api/admin/events tell of them (full, then deltas).

import { $, put, who } from "./parts.js";

// What the shell wants to hear of: a frame was taken, with the ids of the rooms
// that it changed (null: any of them); the session is over.
export const hear = { frame() {}, end() {} };

// --- The API --------------------------------------------------------------------

class Refusal extends Error {
  constructor(status, data) {
    super(data.error || data.message || `The server answered ${status}.`);
    Object.assign(this, { status, code: data.code, field: data.field });
  }
}

// api asks /api/admin. What it throws has {message, status, code, field}: the server's sentence, and the field that it is about.
export async function api(method, path, body) {
  let answer;
  try {
    answer = await fetch("/api/admin" + path, {
      method,
      cache: "no-store",
      credentials: "same-origin",
      signal: AbortSignal.timeout?.(15_000),
      headers: { ...(method !== "GET" && { "X-QM-CSRF": "1" }), ...(body && { "Content-Type": "application/json" }), ...(session.link && { Authorization: "Bearer " + session.link }) },
      ...(body && { body: JSON.stringify(body) }),
    });
  } catch {
    throw new Refusal(0, { error: "The server cannot be reached." });
  }
  const data = (await answer.json().catch(() => null)) || {};
  if (answer.ok) {
    if (path !== "/session") session.fresh = false;
    return data;
  }
  // A wrong code for a second factor ends nothing.
  if (answer.status === 401 && path !== "/session" && data.code !== "invalid_otp")
    hear.end(session.fresh ? "You were signed in, but this browser did not keep it. Please allow cookies for this page." : "Your session has ended. Please sign in again.");
  throw new Refusal(answer.status, data);
}

// publicly asks what everybody may ask, /api/v1.
export async function publicly(path) {
  const answer = await fetch("/api/v1" + path, { cache: "no-store", credentials: "omit" }).catch(() => null);
  if (!answer) throw new Refusal(0, { error: "The server cannot be reached." });
  const data = (await answer.json().catch(() => null)) || {};
  if (!answer.ok) throw new Refusal(answer.status, data);
  return data;
}

// lines reads an export of /api/admin line by line, as it comes.
export async function* lines(path) {
  const answer = await fetch("/api/admin" + path, { cache: "no-store", credentials: "same-origin", headers: session.link ? { Authorization: "Bearer " + session.link } : {} });
  if (!answer.ok) throw new Refusal(answer.status, (await answer.json().catch(() => null)) || {});
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = "", part; !(part = await reader.read()).done; ) {
    const whole = (rest + part.value).split("\n");
    rest = whole.pop();
    yield* whole;
  }
}

// The session is an HttpOnly cookie, which no script can see. What is kept here
// is only until when it may live, so that nobody is asked in vain. Whoever comes
// by a share link has no session: the link's token goes along with each call.
const ROLES = ["monitor", "viewer", "operator", "owner"];
export const session = {
  name: "",
  role: "",
  link: "",
  fresh: false, // no answer has shown yet that the cookie is kept
  is({ name, role }) {
    this.name = who.name = name || "";
    this.role = ROLES.includes(role) ? role : "monitor";
  },
  // may tells whether this role reaches as far as another.
  may(role) {
    return ROLES.indexOf(this.role) >= ROLES.indexOf(role);
  },
  begin(me) {
    keep("localStorage", "qm-console-until", Date.now() + (me.expiresInSec || 43_200) * 1000);
    this.is(me);
    this.now = this.fresh = true;
  },
  end() {
    keep("localStorage", "qm-console-until", null);
    keep("sessionStorage", "qm-console-link", null);
    this.now = this.fresh = false;
    this.role = this.name = who.name = this.link = "";
  },
  // takeLink takes a share link's token out of the address bar (seed 004: it is in the fragment, which goes to no server).
  takeLink() {
    const found = /^#monitor=(.+)$/.exec(location.hash);
    if (found) {
      history.replaceState(null, "", location.pathname);
      this.link = decodeURIComponent(found[1]);
      keep("sessionStorage", "qm-console-link", this.link);
    } else this.link ||= kept("sessionStorage", "qm-console-link") || "";
  },
  alive() {
    return Boolean(this.now || this.link || Number(kept("localStorage", "qm-console-until")) > Date.now());
  },
};

// Storage may be forbidden: then signing in lasts as long as this page.
function keep(store, name, value) {
  try {
    if (value === null) window[store].removeItem(name);
    else window[store].setItem(name, value);
  } catch {}
}
function kept(store, name) {
  try {
    return window[store].getItem(name);
  } catch {
    return null;
  }
}

// --- What is known --------------------------------------------------------------

export let rooms = []; // in the server's order
export let totals = {};
export let lastFrame = 0; // when the last one came, ms
export let serverAhead = 0; // how far the server's clock is ahead of this device's, ms
let full = false; // a full frame lies under the deltas of this stream
let byId = new Map();
export const find = (id) => byId.get(id);

const index = () => (byId = new Map(rooms.map((r) => [r.id, r])));

// take takes a frame in, and answers the ids of the rooms that it changed, null for all, or false when it cannot be understood.
export function take(frame) {
  let changed = null;
  if (frame.delta) {
    if (!full) return false;
    const gone = new Set(frame.removed || []);
    const fresh = new Map((frame.rooms || []).map((r) => [r.id, r]));
    changed = new Set([...gone, ...fresh.keys()]);
    rooms = [...rooms.filter((r) => !gone.has(r.id)).map((r) => fresh.get(r.id) || r), ...[...fresh.values()].filter((r) => !byId.has(r.id))];
  } else {
    full = true;
    rooms = frame.rooms || [];
  }
  index();
  totals = frame.totals || {};
  lastFrame = Date.now();
  if (frame.now) serverAhead = frame.now - lastFrame;
  return changed;
}

let source = null;
let retry = 0;
let attempts = 0;
let stream = 0; // grows when whatever is under way becomes void
export async function connect() {
  disconnect();
  const mine = stream;
  let ticket;
  try {
    ({ ticket } = await api("POST", "/sse-ticket"));
  } catch (e) {
    if (mine === stream && e.status !== 401) later(e.status ? e.message : "");
    return;
  }
  if (mine !== stream) return;
  full = false;
  const es = (source = new EventSource("/api/admin/events?ticket=" + encodeURIComponent(ticket)));
  const on = (event) => {
    if (es !== source) return;
    let frame;
    try {
      frame = JSON.parse(event.data);
    } catch {
      return;
    }
    const changed = take(frame);
    if (changed === false) return later(""); // a delta without a full frame: start over
    attempts = 0;
    lost("");
    hear.frame(changed);
  };
  for (const name of ["message", "stats", "rooms"]) es.addEventListener(name, on);
  es.onerror = () => es === source && later(""); // the ticket is spent: a new one each time
}
export function disconnect() {
  stream++;
  source?.close();
  source = null;
  clearTimeout(retry);
}
function later(why) {
  disconnect();
  attempts++;
  if (attempts > 1 || why) lost(why || "The connection to the server is lost. Trying again.");
  retry = setTimeout(connect, Math.min(15_000, 500 * 2 ** attempts) * (0.75 + Math.random() / 2));
}
export function lost(sentence) {
  put($("lost"), sentence);
  $("lost").hidden = !sentence;
}

// learn takes in what the answer to an act says of its room, before the next
// frame does. Anything else is none of its business.
export function learn(r) {
  if (!r || typeof r.id !== "string" || !("waiting" in r)) return;
  const i = rooms.findIndex((x) => x.id === r.id);
  if (i < 0) rooms.push(r);
  else rooms[i] = r;
  index();
  hear.frame(new Set([r.id]));
}

// forget drops what was known of rooms: one that was deleted, or all.
export function forget(id) {
  rooms = id ? rooms.filter((r) => r.id !== id) : [];
  index();
  if (!id) lastFrame = 0;
}
