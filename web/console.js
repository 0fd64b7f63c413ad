// The operators' console. Figures come as frames from /api/admin/events (full,
// then deltas); every act answers in its own place. Nothing is invented: what
// the server did not say shows as a dash.

const $ = (id) => document.getElementById(id);
const main = $("main");
const nf = new Intl.NumberFormat();
const num = (v) => (typeof v === "number" ? nf.format(v) : "–");
const people = (n) => (n === 1 ? "1 person" : `${nf.format(n)} people`);

// el("p.soft", {title: "…"}, child, …) makes an element.
function el(what, attrs, ...children) {
  const [tag, ...classes] = what.split(".");
  const node = document.createElement(tag);
  if (classes.length) node.className = classes.join(" ");
  for (const [k, v] of Object.entries(attrs || {})) {
    if (k.startsWith("on")) node.addEventListener(k.slice(2), v);
    else if (v === true) node.setAttribute(k, "");
    else if (v !== false && v != null) node.setAttribute(k, v);
  }
  node.append(...children.filter((c) => c != null));
  return node;
}
const put = (node, value) => node.textContent !== value && (node.textContent = value);

// --- The API ----------------------------------------------------------------

class Refusal extends Error {
  constructor(status, data) {
    super(data.error || data.message || `The server answered ${status}.`);
    Object.assign(this, { status, code: data.code, field: data.field });
  }
}

async function api(method, path, body) {
  let answer;
  try {
    answer = await fetch("/api/admin" + path, {
      method,
      cache: "no-store",
      credentials: "same-origin",
      signal: AbortSignal.timeout(15_000),
      headers: { ...(method !== "GET" && { "X-QM-CSRF": "1" }), ...(body && { "Content-Type": "application/json" }) },
      ...(body && { body: JSON.stringify(body) }),
    });
  } catch {
    throw new Refusal(0, { error: "The server cannot be reached." });
  }
  const data = await answer.json().catch(() => ({}));
  if (answer.ok) return data;
  if (answer.status === 401 && path !== "/session") signIn("Your session has ended. Please sign in again.");
  throw new Refusal(answer.status, data);
}

// --- What is known ------------------------------------------------------------

let rooms = []; // in the server's order
let totals = {};
let lastFrame = 0;
let full = false; // a full frame lies under the deltas of this stream
const depth = new Map(); // room id -> [[ms, waiting]…] of the last 15 minutes
const SPAN = 15 * 60_000;
const find = (id) => rooms.find((r) => r.id === id);

function take(frame) {
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
async function connect() {
  disconnect();
  full = false;
  let ticket;
  try {
    ({ ticket } = await api("POST", "/sse-ticket"));
  } catch (e) {
    if (e.status !== 401) later(e.status ? e.message : "");
    return;
  }
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
    draw();
  };
  for (const name of ["message", "stats", "rooms"]) es.addEventListener(name, on);
  es.onerror = () => es === source && later(""); // the ticket is spent: a new one each time
}
function disconnect() {
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
function lost(sentence) {
  put($("lost"), sentence);
  $("lost").hidden = !sentence;
}

// --- Words ----------------------------------------------------------------------

function span(sec) {
  if (typeof sec !== "number") return "–";
  if (sec < 60) return `${Math.round(sec)} s`;
  if (sec < 3600) return `${Math.floor(sec / 60)} min`;
  if (sec < 86_400) return `${Math.floor(sec / 3600)} h ${Math.floor(sec / 60) % 60} min`;
  return `${Math.floor(sec / 86_400)} d ${Math.floor(sec / 3600) % 24} h`;
}
function long(sec) {
  if (sec < 60) return "less than a minute";
  const min = Math.round(sec / 60);
  if (min < 90) return `about ${min === 1 ? "a minute" : min + " minutes"}`;
  return `about ${Math.round(min / 60)} hours`;
}
const stateOf = (r) => r.effectiveState || r.state || "–";
const rateOf = (r) => r.ratePerMinute ?? r.rate;
const preOf = (r) => r.preQueue ?? r.preCount;
const eta = (r) => (typeof r.estWaitSec === "number" ? (r.estWaitFloor ? "from " : "") + span(r.estWaitSec) : r.estWaitSec === null ? "unknown" : "–");
const clockOf = (at) => new Date(at).toLocaleTimeString([], { hour12: false });
const full24 = (at) => new Date(at).toLocaleString([], { dateStyle: "medium", timeStyle: "long" });
const lineOf = (id) => `${location.origin}/w/${encodeURIComponent(id)}`;

// What a rate will do, before it is set.
function rateSays(r, rate) {
  if (!Number.isInteger(rate) || rate < 0) return "A whole number, 0 or more.";
  const n = r.waiting || 0;
  if (rate === 0) return "0 a minute: nobody is let in until you raise it.";
  if (stateOf(r) === "paused") return `${num(rate)} a minute, once the line is active again.`;
  if (!n) return `${num(rate)} a minute: nobody is waiting now.`;
  return `${num(rate)} a minute: the line is gone in ${long((n / rate) * 60)}, if nobody else joins.`;
}

function graph(cls, series) {
  const ns = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(ns, "svg");
  svg.setAttribute("class", cls);
  svg.setAttribute("viewBox", "0 0 300 100");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("aria-hidden", "true");
  const end = series?.at(-1)?.[0] ?? 0;
  const top = Math.max(1, ...(series || []).map((p) => p[1]));
  const dots = (series || []).map(([t, v]) => `${(300 - ((end - t) / SPAN) * 300).toFixed(1)} ${(97 - (v / top) * 92).toFixed(1)}`);
  if (dots.length > 1) {
    for (const [kind, d] of [
      ["area", `M${dots[0].split(" ")[0]} 100L${dots.join("L")}L300 100Z`],
      ["edge", `M${dots.join("L")}`],
    ]) {
      const path = document.createElementNS(ns, "path");
      path.setAttribute("class", kind);
      path.setAttribute("d", d);
      svg.append(path);
    }
  }
  return svg;
}

// --- Acts -------------------------------------------------------------------------

// act runs one change and says in its own place how it went.
async function act(out, button, run, done) {
  button.disabled = true;
  out.className = "out";
  put(out, "…");
  try {
    const answer = await run();
    put(out, `${done(answer)} ${clockOf(Date.now())}.`);
    return answer;
  } catch (e) {
    out.className = "out err";
    put(out, e.message);
  } finally {
    button.disabled = false;
  }
}

// ask puts one question, in place, before something that touches people.
function ask(box, question, yes, run) {
  const close = () => box.replaceChildren();
  const go = el("button.bad", { type: "button", onclick: () => (close(), run()) }, yes);
  const no = el("button", { type: "button", onclick: close }, "Keep as it is");
  box.replaceChildren(el("div.ask", { role: "group", "aria-label": question }, el("p", {}, question), el("div.row", {}, go, no)));
  no.focus();
}

// --- Pages --------------------------------------------------------------------------

let page = null; // {draw(), leave?()}
function show(title, next) {
  page?.leave?.();
  document.title = title ? `${title} · Queue Manager` : "Queue Manager";
  main.replaceChildren(next.node);
  page = next;
  next.draw?.();
}
function draw() {
  const n = totals.waiting ?? rooms.reduce((sum, r) => sum + (r.waiting || 0), 0);
  put($("totals"), lastFrame ? `${people(n)} waiting in ${rooms.length === 1 ? "1 room" : rooms.length + " rooms"}` : "");
  page?.draw?.();
}

// The session is an HttpOnly cookie, which no script can see. What is kept here
// is only until when it may live, so that nobody is asked in vain.
const session = {
  key: "qm-console-until",
  begin(sec = 43_200) {
    try {
      localStorage.setItem(this.key, Date.now() + sec * 1000);
    } catch {} // storage forbidden: signing in lasts as long as this page
    this.now = true;
  },
  end() {
    try {
      localStorage.removeItem(this.key);
    } catch {}
    this.now = false;
  },
  alive() {
    try {
      return this.now || Number(localStorage.getItem(this.key)) > Date.now();
    } catch {
      return false;
    }
  },
};

function signIn(why) {
  session.end();
  disconnect();
  lost("");
  lastFrame = 0;
  rooms = [];
  put($("totals"), "");
  $("signout").hidden = true;
  const key = el("input", { id: "key", type: "password", autocomplete: "current-password", required: true, "aria-describedby": "keyOut" });
  const out = el("p.out", { id: "keyOut", role: "status" }, why || "");
  const button = el("button.main", { type: "submit" }, "Sign in");
  const form = el(
    "form.panel",
    {
      onsubmit: async (event) => {
        event.preventDefault();
        button.disabled = true;
        try {
          const { expiresInSec } = await api("POST", "/session", { key: key.value.trim() });
          session.begin(expiresInSec);
          start();
        } catch (e) {
          out.className = "out err";
          put(out, e.message);
          key.setAttribute("aria-invalid", "true");
          key.select();
          button.disabled = false;
        }
      },
    },
    el("h1", {}, "Sign in"),
    el("p", {}, "With the admin key this server was started with, or an operator key of your own."),
    el("div.field", {}, el("label", { for: "key" }, "Key"), key),
    out,
    el("div.row", {}, button),
  );
  show("Sign in", { node: el("div.first", {}, form) });
  key.focus();
}

function overview() {
  const age = el("p.age", {});
  const body = el("tbody");
  const table = el(
    "table.rooms",
    {},
    el("thead", {}, el("tr", {}, ...["Room", "State", "Waiting", "In a minute", "Out a minute", "Oldest wait", "Wait if you join now", "Last 15 minutes"].map((h, i) => el(i > 1 && i < 7 ? "th.num" : "th", { scope: "col" }, h)))),
    body,
  );
  const rows = new Map();
  const row = (r) => {
    const cell = (k, cls = "td.num.live") => el(cls, { "data-k": k });
    const c = { state: cell("State", "td.live"), waiting: cell("Waiting"), in: cell("In a minute"), out: cell("Out a minute"), oldest: cell("Oldest wait"), eta: cell("Wait now"), spark: el("td.live.graph") };
    c.name = el("a", { href: "#/rooms/" + encodeURIComponent(r.id) });
    c.tr = el("tr", {}, el("th", { scope: "row" }, c.name, el("small", {}, r.id)), c.state, c.waiting, c.in, c.out, c.oldest, c.eta, c.spark);
    return c;
  };
  const node = el(
    "div",
    {},
    el("div.head", {}, el("h1", {}, "Rooms"), el("button.main", { type: "button", onclick: () => (location.hash = "#/new") }, "New room")),
    el("div.panel", {}, table),
    age,
  );
  show("Rooms", {
    node,
    draw() {
      if (lastFrame && !rooms.length) return location.replace("#/new");
      for (const [id, c] of rows) if (!find(id)) c.tr.remove(), rows.delete(id);
      for (const r of rooms) {
        const c = rows.get(r.id) || row(r);
        if (!rows.has(r.id)) rows.set(r.id, c), body.append(c.tr);
        put(c.name, r.name || r.id);
        c.state.replaceChildren(r.error ? el("span.err", {}, r.error) : el("span.state", { "data-s": stateOf(r) }, stateOf(r)));
        put(c.waiting, num(r.waiting) + (preOf(r) ? ` + ${num(preOf(r))}` : ""));
        c.waiting.title = preOf(r) ? `${num(preOf(r))} before the draw` : "";
        put(c.in, num(r.joinedLastMin));
        put(c.out, `${num(r.passedLastMin)} of ${num(rateOf(r))}`);
        put(c.oldest, span(r.oldestWaitSec));
        put(c.eta, eta(r));
        c.spark.replaceChildren(graph("spark", depth.get(r.id)));
      }
      stale(node, age);
    },
  });
}

function stale(node, age) {
  const sec = Math.round((Date.now() - lastFrame) / 1000);
  node.classList.toggle("stale", lastFrame > 0 && sec > 10);
  put(age, lastFrame && sec > 10 ? `These figures are ${span(sec)} old.` : "");
}

function field(id, label, hint, attrs) {
  const input = el("input", { id, name: id, required: true, "aria-describedby": id + "Hint", ...attrs });
  return { input, node: el("div.field", {}, el("label", { for: id }, label), input, el("p.hint", { id: id + "Hint" }, hint)) };
}

function create() {
  const id = field("id", "Id", "3 to 64 of a to z, 0 to 9 and dashes. It is part of the line's address.", { pattern: "[a-z0-9]([a-z0-9\\-]{1,62})[a-z0-9]", autocomplete: "off", autocapitalize: "off", spellcheck: "false" });
  const name = field("name", "Name", "Your visitors read it on the waiting page.", { autocomplete: "off", maxlength: 200 });
  const target = field("targetUrl", "Target address", "Where visitors go when it is their turn.", { type: "url", placeholder: "https://shop.example/", autocomplete: "url" });
  const out = el("p.out", { role: "status" });
  const button = el("button.main", { type: "submit" }, "Create the room");
  const form = el(
    "form.panel",
    {
      onsubmit: async (event) => {
        event.preventDefault();
        const body = { id: id.input.value.trim(), name: name.input.value.trim(), targetUrl: target.input.value.trim(), ratePerMinute: 60 };
        for (const f of [id, name, target]) f.input.removeAttribute("aria-invalid");
        if (find(body.id)) {
          out.className = "out err";
          put(out, `There is a room ${body.id} already.`);
          return id.input.focus();
        }
        button.disabled = true;
        try {
          await api("POST", "/rooms", body);
          location.hash = "#/rooms/" + encodeURIComponent(body.id);
        } catch (e) {
          out.className = "out err";
          put(out, e.message);
          const wrong = form.elements[e.field] || [id, name, target].map((f) => f.input).find((i) => e.code?.includes(i.name === "targetUrl" ? "target" : i.name));
          wrong?.setAttribute("aria-invalid", "true");
          wrong?.focus();
          button.disabled = false;
        }
      },
    },
    el("h1", {}, rooms.length ? "New room" : "Your first line"),
    el("p", {}, "Three answers make a working line. It lets in 60 people a minute until you change that."),
    id.node,
    name.node,
    target.node,
    out,
    el("div.row", {}, button, ...(rooms.length ? [el("a", { href: "#/" }, "Back to the rooms")] : [])),
  );
  show("New room", { node: el("div.first", {}, form) });
  id.input.focus();
}

// --- One room -----------------------------------------------------------------------

function room(id) {
  const path = "/rooms/" + encodeURIComponent(id);
  const now = () => find(id) || {};
  const title = el("h1", {});
  const badge = el("span.state.live", {});
  const age = el("p.age", {});
  const chart = el("div.live", {});
  const chartSays = el("p.hint", {});
  const facts = {};
  const dl = el("dl.facts.live", {}, ...["Waiting", "In a minute", "Out a minute", "Oldest wait", "Wait if you join now", "Inside"].map((k) => el("div", {}, el("dt", {}, k), (facts[k] = el("dd", {}, "–")))));

  const control = (...children) => {
    const c = { out: el("p.out", { role: "status" }), box: el("div") };
    c.node = el("div.control", {}, ...children, c.box, c.out);
    return c;
  };
  const number = (name, label, attrs) => {
    const input = el("input", { id: name, type: "number", min: 0, step: 1, inputmode: "numeric", ...attrs });
    return { input, node: el("div", {}, el("label", { for: name }, label), input) };
  };

  // State
  const states = ["active", "paused", "bypass"].map((s) => {
    const words = { active: "Active", paused: "Paused", bypass: "Bypass" }[s];
    return el("button", { type: "button", "data-s": s, onclick: () => setState(s) }, words);
  });
  const state = control(el("p.legend", { id: "stateL" }, "State"), el("div.seg", { role: "group", "aria-labelledby": "stateL" }, ...states));
  const setState = (s) => {
    const button = states.find((b) => b.dataset.s === s);
    const run = () => act(state.out, button, () => api("POST", path + "/state", { state: s }), () => ({ active: "The line moves.", paused: "The line is paused; places are kept.", bypass: "The line is off: everyone goes straight in." })[s]);
    const n = (now().waiting || 0) + (preOf(now()) || 0);
    if (s === "bypass" && n) ask(state.box, `Bypass lets ${people(n)} in at once. Can the site take that?`, "Let everyone in", run);
    else run();
  };

  // Rate
  const rate = number("rate", "People a minute");
  const rateHint = el("p.hint", { id: "rateHint" });
  rate.input.setAttribute("aria-describedby", "rateHint");
  const rateButton = el("button.main", { type: "submit" }, "Set the rate");
  const rateC = control(el("form.row", { onsubmit: (e) => (e.preventDefault(), setRate()) }, rate.node, rateButton), rateHint);
  const sayRate = () => put(rateHint, rateSays(now(), rate.input.value === "" ? NaN : Number(rate.input.value)));
  let rateTouched = false;
  rate.input.addEventListener("input", () => ((rateTouched = true), sayRate()));
  const setRate = async () => {
    const v = Number(rate.input.value);
    const was = rateOf(now());
    if (await act(rateC.out, rateButton, () => api("POST", path + "/rate", { ratePerMinute: v }), () => `${num(v)} a minute, before it was ${num(was)}.`)) rateTouched = false;
  };

  // Flush
  const flush = number("flush", "Let in now", { min: 1, value: 10 });
  const flushButton = el("button", { type: "submit" }, "Let them in");
  const flushC = control(el("form.row", { onsubmit: (e) => (e.preventDefault(), doFlush()) }, flush.node, flushButton), el("p.hint", {}, "The first in line pass at once, whatever the rate."));
  const doFlush = () => {
    const n = Number(flush.input.value);
    const run = () => act(flushC.out, flushButton, () => api("POST", path + "/flush", { count: n }), (a) => `${people(a.flushed ?? a.passed ?? a.promoted ?? n)} let in.`);
    if (n > 100) ask(flushC.box, `This lets ${people(Math.min(n, now().waiting ?? n))} in at once. Can the site take that?`, "Let them in", run);
    else run();
  };

  // Schedule
  const opens = el("input", { id: "opens", type: "datetime-local", required: true });
  const openButton = el("button", { type: "submit" }, "Schedule");
  const cancelButton = el("button", { type: "button", onclick: () => cancelDrop() }, "Cancel the opening");
  const openHint = el("p.hint", {});
  const openC = control(
    el("form.row", { onsubmit: (e) => (e.preventDefault(), schedule()) }, el("div", {}, el("label", { for: "opens" }, "Doors open"), opens), openButton, cancelButton),
    openHint,
  );
  const schedule = () => {
    const at = new Date(opens.value).getTime();
    act(openC.out, openButton, () => api("POST", path + "/schedule", { opensAt: at }), () => `The doors open at ${full24(at)}. Until then people gather, and the order is drawn.`);
  };
  const cancelDrop = () => {
    const n = preOf(now()) || 0;
    const run = () => act(openC.out, cancelButton, () => api("POST", path + "/schedule", { opensAt: null }), () => "There is no opening set.");
    if (n) ask(openC.box, `${people(n)} are waiting for the opening. Cancelling draws their places now.`, "Cancel the opening", run);
    else run();
  };

  // Message
  const message = el("textarea", { id: "message", rows: 2, maxlength: 2000 });
  const messageButton = el("button", { type: "submit" }, "Publish");
  const messageC = control(
    el("form", { onsubmit: (e) => (e.preventDefault(), publish()) }, el("label", { for: "message" }, "Message to everyone in line"), message, el("div.row", {}, messageButton)),
  );
  let messageTouched = false;
  message.addEventListener("input", () => (messageTouched = true));
  const publish = async () => {
    const { name, logoUrl, color, background } = now().branding || {};
    const branding = { message: message.value.trim() };
    for (const [k, v] of Object.entries({ name, logoUrl, color, background })) if (v) branding[k] = v;
    const run = () => api("POST", "/rooms", { id, branding });
    if (await act(messageC.out, messageButton, run, () => (branding.message ? "Everyone in line can read it." : "There is no message."))) messageTouched = false;
  };

  // Eject
  const ticket = number("ticket", "Ticket to the back", { min: 1, required: true });
  const ejectButton = el("button", { type: "submit" }, "Eject");
  const ejectC = control(
    el(
      "form.row",
      { onsubmit: (e) => (e.preventDefault(), act(ejectC.out, ejectButton, () => api("POST", path + "/eject", { ticket: Number(ticket.input.value) }), () => `Ticket ${ticket.input.value} is at the back of the line.`)) },
      ticket.node,
      ejectButton,
    ),
    el("p.hint", {}, "Takes the pass or the door session back; the person gets a new place at the end."),
  );

  // Purge and delete
  const purgeButton = el("button.bad", { type: "button", onclick: () => purge() }, "Purge the line");
  const deleteButton = el("button.bad", { type: "button", onclick: () => remove() }, "Delete the room");
  const endC = control(el("p.legend", {}, "End"), el("div.seg", {}, purgeButton, deleteButton));
  const purge = () => {
    const n = (now().waiting || 0) + (preOf(now()) || 0);
    ask(endC.box, n ? `${people(n)} lose their places; none of them is let in. This cannot be undone.` : "Nobody is waiting. Purge all the same?", "Purge the line", () =>
      act(endC.out, purgeButton, () => api("POST", path + "/purge"), (a) => `${people(a.purged ?? 0)} taken out of the line.`),
    );
  };
  const remove = () => {
    const n = (now().waiting || 0) + (preOf(now()) || 0);
    ask(endC.box, `Delete ${id}?${n ? ` ${people(n)} lose their places.` : ""} Passes end too. This cannot be undone.`, "Delete the room", async () => {
      if (await act(endC.out, deleteButton, () => api("DELETE", path), () => "Deleted.")) {
        rooms = rooms.filter((r) => r.id !== id);
        location.hash = "#/";
      }
    });
  };

  // The line's address
  const copy = el(
    "button",
    {
      type: "button",
      onclick: async () => {
        try {
          await navigator.clipboard.writeText(lineOf(id));
          put(copy, "Copied");
        } catch {
          put(copy, "Copying is not allowed here");
        }
      },
    },
    "Copy",
  );
  const log = journal(path, now);
  const node = el(
    "div",
    {},
    el("p.crumb", {}, el("a", { href: "#/" }, "Rooms")),
    el("div.head", {}, title, badge),
    el("div.panel", {}, dl, chart, chartSays, el("div.line", {}, el("span.soft", {}, "The line:"), el("a", { href: "/w/" + encodeURIComponent(id), target: "_blank", rel: "noreferrer" }, el("code", {}, lineOf(id))), copy)),
    age,
    el("div.cols", {}, el("section.panel", { "aria-label": "Controls" }, el("h2", {}, "Controls"), state.node, rateC.node, messageC.node, flushC.node, openC.node, ejectC.node, endC.node), log.node),
  );
  show(id, {
    node,
    leave: log.leave,
    draw() {
      const r = now();
      if (!r.id) {
        if (lastFrame) put(title, `There is no room ${id}.`);
        return;
      }
      document.title = `${num(r.waiting)} waiting · ${r.name || id} · Queue Manager`;
      put(title, r.name || id);
      badge.dataset.s = stateOf(r);
      put(badge, r.error || (stateOf(r) === "scheduled" && r.opensAt ? `scheduled for ${full24(r.opensAt)}` : stateOf(r)));
      put(facts["Waiting"], num(r.waiting) + (preOf(r) ? ` + ${num(preOf(r))}` : "") + (r.held ? ` (${num(r.held)} held)` : ""));
      put(facts["In a minute"], num(r.joinedLastMin));
      put(facts["Out a minute"], `${num(r.passedLastMin)} of ${num(rateOf(r))}`);
      put(facts["Oldest wait"], span(r.oldestWaitSec));
      put(facts["Wait if you join now"], eta(r));
      put(facts["Inside"], num(r.live) + (r.maxConcurrent ? ` of ${num(r.maxConcurrent)}` : ""));
      const series = depth.get(id) || [];
      chart.replaceChildren(graph("chart", series));
      put(chartSays, `People waiting, last 15 minutes; at most ${num(Math.max(0, ...series.map((p) => p[1])))}.`);
      for (const b of states) b.setAttribute("aria-pressed", String(b.dataset.s === r.state));
      if (!rateTouched && document.activeElement !== rate.input && rateOf(r) != null) rate.input.value = rateOf(r);
      sayRate();
      messageC.node.hidden = !r.branding; // whoever may not read it should not overwrite it
      if (!messageTouched && document.activeElement !== message) message.value = r.branding?.message || "";
      cancelButton.hidden = !r.opensAt || stateOf(r) !== "scheduled";
      put(openHint, stateOf(r) === "scheduled" ? `Set for ${full24(r.opensAt)}; ${people(preOf(r) || 0)} here.` : "In your own time zone. Those who are here at the opening get their places by draw.");
      stale(node, age);
    },
  });
}

// The last events of a room's journal, newest first.
function journal(path, now) {
  const list = el("ol.journal", {});
  const out = el("p.out", {});
  const node = el("section.panel", { "aria-label": "Journal" }, el("h2", {}, "Journal"), el("p.hint", {}, "What happened in this room, newest first. Point at one for its number, instant and actor."), list, out);
  const KEEP = 100;
  let after = null;
  let timer = 0;
  let gone = false;
  const line = (e) => {
    const at = e.at ?? e.time;
    return el("li", { title: `${e.seq ?? "–"}${at ? ", " + full24(at) : ""}, by ${e.actor || "–"}` }, el("span.soft", {}, at ? clockOf(at) : "–"), el("b", {}, e.kind || "–"), el("span.soft", {}, detail(e.body) + (e.actor && !["visitor", "clock"].includes(e.actor) ? ` by ${e.actor}` : "")));
  };
  const detail = (body) => {
    const b = typeof body === "string" ? body : JSON.stringify(body ?? {});
    const plain = b.replace(/([\w+/=-]{8})[\w+/=-]{12,}/g, "$1…").replace(/^\{|\}$/g, "").replace(/"/g, "").replace(/,/g, ", ").replace(/:/g, " ");
    return plain.length > 120 ? plain.slice(0, 119) + "…" : plain;
  };
  async function more() {
    try {
      // Begin near the head, where the room says how far it is.
      if (after === null) after = Math.max(0, (now().seq ?? 0) - KEEP);
      for (let rounds = 0; rounds < 50; rounds++) {
        const data = await api("GET", `${path}/journal?after=${after}&limit=500`);
        const events = Array.isArray(data) ? data : data.events || data.records || [];
        if (!events.length) break;
        after = events.at(-1).seq;
        list.prepend(...events.slice(-KEEP).reverse().map(line));
        while (list.children.length > KEEP) list.lastChild.remove();
        if (events.length < 500) break;
      }
      put(out, list.children.length ? "" : "Nothing has happened yet.");
      out.className = "out";
    } catch (e) {
      out.className = "out err";
      put(out, e.message);
    }
    if (!gone) timer = setTimeout(more, 3000);
  }
  timer = setTimeout(more, 0);
  return { node, leave: () => ((gone = true), clearTimeout(timer)) };
}

// --- Routes -----------------------------------------------------------------------

function route() {
  if ($("signout").hidden) return;
  const [, where, id] = location.hash.split("/");
  if (where === "new") create();
  else if (where === "rooms" && id) room(decodeURIComponent(id));
  else overview();
}
addEventListener("hashchange", () => {
  route();
  if (document.activeElement === document.body) main.focus();
});
setInterval(() => lastFrame && Date.now() - lastFrame > 3000 && draw(), 1000);
document.addEventListener("visibilitychange", () => !document.hidden && lastFrame && Date.now() - lastFrame > 10_000 && connect());
$("signout").addEventListener("click", async () => {
  await api("DELETE", "/session").catch(() => {});
  signIn("You are signed out.");
});

async function start() {
  if (!session.alive()) return signIn("");
  let listed;
  try {
    listed = await api("GET", "/rooms");
  } catch (e) {
    if (e.status === 401) return;
    lost(e.message);
    retry = setTimeout(start, 3000);
    return;
  }
  lost("");
  take({ rooms: Array.isArray(listed) ? listed : listed.rooms, totals: listed.totals });
  full = false;
  $("signout").hidden = false;
  draw();
  route();
  connect();
}
start();
