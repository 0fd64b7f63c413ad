// What the console knows: the session, the API behind it, and the rooms as the
// frames of /api/admin/events tell of them (full, then deltas).

import { $, SPAN, put } from "./console-parts.js";

// What the pages want to hear of: a frame was taken; the session is over.
export const hear = { frame() {}, end() {} };

// --- The API --------------------------------------------------------------------

class Refusal extends Error {
  constructor(status, data) {
    super(data.error || data.message || `The server answered ${status}.`);
    Object.assign(this, { status, code: data.code, field: data.field });
  }
}

export async function api(method, path, body) {
  let answer;
  try {
    answer = await fetch("/api/admin" + path, {
      method,
      cache: "no-store",
      credentials: "same-origin",
      signal: AbortSignal.timeout?.(15_000),
      headers: { ...(method !== "GET" && { "X-QM-CSRF": "1" }), ...(body && { "Content-Type": "application/json" }) },
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
  if (answer.status === 401 && path !== "/session")
    hear.end(session.fresh ? "You were signed in, but this browser did not keep it. Please allow cookies for this page." : "Your session has ended. Please sign in again.");
  throw new Refusal(answer.status, data);
}

// The session is an HttpOnly cookie, which no script can see. What is kept here
// is only until when it may live, so that nobody is asked in vain.
export const session = {
  key: "qm-console-until",
  begin(sec = 43_200) {
    try {
      localStorage.setItem(this.key, Date.now() + sec * 1000);
    } catch {} // storage forbidden: signing in lasts as long as this page
    this.now = this.fresh = true; // fresh: no answer has shown yet that the cookie is kept
  },
  end() {
    try {
      localStorage.removeItem(this.key);
    } catch {}
    this.now = this.fresh = false;
  },
  alive() {
    try {
      return this.now || Number(localStorage.getItem(this.key)) > Date.now();
    } catch {
      return false;
    }
  },
};

// --- What is known --------------------------------------------------------------

export let rooms = []; // in the server's order
export let totals = {};
export let lastFrame = 0;
let full = false; // a full frame lies under the deltas of this stream
export const depth = new Map(); // room id -> [[ms, waiting]…] of the last 15 minutes
export const find = (id) => rooms.find((r) => r.id === id);

export function take(frame) {
  if (frame.delta) {
    if (!full) return false;
    const gone = new Set(frame.removed || []);
    rooms = rooms.filter((r) => !gone.has(r.id));
    for (const r of frame.rooms || []) {
      const i = rooms.findIndex((x) => x.id === r.id);
      if (i < 0) rooms.push(r);
      else rooms[i] = r;
    }
  } else {
    full = true;
    rooms = frame.rooms || [];
  }
  totals = frame.totals || {};
  lastFrame = Date.now();
  for (const id of depth.keys()) if (!find(id)) depth.delete(id);
  for (const r of rooms) {
    const series = depth.get(r.id) || [];
    const spark = frame.sparkline?.[r.id] ?? frame.sparklines?.[r.id] ?? r.sparkline;
    if (!series.length && Array.isArray(spark))
      spark.forEach((v, i) => series.push(Array.isArray(v) ? v : [lastFrame - (SPAN * (spark.length - i)) / spark.length, v]));
    series.push([lastFrame, (r.waiting || 0) + (r.preQueue ?? r.preCount ?? 0)]);
    while (series[0][0] < lastFrame - SPAN) series.shift();
    depth.set(r.id, series);
  }
  return true;
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
    if (!take(frame)) return later(""); // a delta without a full frame: start over
    attempts = 0;
    lost("");
    hear.frame();
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
  hear.frame();
}

// forget drops what was known of rooms: one that was deleted, or all.
export function forget(id) {
  rooms = id ? rooms.filter((r) => r.id !== id) : [];
  if (!id) lastFrame = 0;
}
