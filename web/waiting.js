// The waiting page. One question is asked here: when is it my turn, and will I
// lose my place? The server's frames answer it; this module shows them, keeps
// the connection, and never gives a place away because something failed. What
// it asks of the server is in waiting.go.

import { cfg, clock, count, eta, instant, number, say, words } from "./waiting-words.js";

const $ = (id) => document.getElementById(id);
document.documentElement.classList.add("js");

const { roomId } = cfg;
const base = cfg.basePath || "";
const pollMs = (cfg.pollSeconds || 5) * 1000;
const still = matchMedia("(prefers-reduced-motion: reduce)");
const jitter = (ms, spread = 0.4) => ms * (1 - spread / 2 + Math.random() * spread);

// --- The place: what this browser holds -----------------------------------

// A token names a place: a ticket n or a pre-queue handle q of generation g.
function nameOf(token) {
  try {
    const raw = atob(token.split(".")[0].replace(/-/g, "+").replace(/_/g, "/"));
    const t = JSON.parse(raw);
    return t.n === undefined ? `q${t.g}.${t.q}` : `n${t.g}.${t.n}`;
  } catch {
    return "";
  }
}

const store = {
  key: "qm:" + roomId,
  load() {
    try {
      const kept = JSON.parse(localStorage.getItem(this.key));
      return typeof kept?.token === "string" ? kept : {};
    } catch {
      return {};
    }
  },
  save() {
    try {
      if (place.token) localStorage.setItem(this.key, JSON.stringify(place));
      else localStorage.removeItem(this.key);
    } catch {} // storage forbidden: the cookie keeps the place
  },
};
// token; name of the place; ref: its short code; first: the position first seen; done: the part of the wait that is over
let place = store.load();

// A frame may renew our token, and name the ticket that our handle was drawn as. Any other place is not ours.
const same = (name) => !place.name || name === place.name || (place.name[0] === "q" && name.startsWith(`n${place.name.slice(1).split(".")[0]}.`));

function hold(token) {
  if (!token) return;
  const name = nameOf(token);
  if (name !== place.name) {
    if (place.name && same(name)) drawnUntil = Date.now() + 20_000;
    place = { token, name };
    due = 0;
  } else place.token = token;
  store.save();
}

// --- What is known ----------------------------------------------------------

let frame = cfg.first?.state ? cfg.first : null; // the server's last word
let skew = 0; // server clock minus ours, ms
let trouble = cfg.retry ? "backend" : ""; // why frames do not come
let fate = ""; // why there is nothing to wait for
let lapsed = cfg.lapsed || ""; // why the place before this one was lost
let lapsedUntil = 0;
let drawnUntil = cfg.state === "drawn" ? Date.now() + 20_000 : 0;
let turnEnds = 0;
let due = 0; // when we said that it would be the turn
let slowUntil = 0; // it has become later than we said
let lastFrame = 0;

const opensIn = () => frame.opensAt - skew - Date.now();

function state() {
  if (trouble === "offline") return trouble;
  if (fate) return fate;
  if (frame?.state === "bypass") return "bypass";
  if (frame?.passed) return "turn";
  // Who holds no place yet is not told that it is kept.
  if (trouble) return frame || place.token || trouble === "busy" ? trouble : "backend";
  if (lapsed) return lapsed;
  if (!frame) return "joining";
  // Who held a ticket before the opening was set keeps it.
  if (frame.scheduled && frame.position > 0) return "shut";
  if (frame.scheduled) return opensIn() > 0 ? "scheduled" : "drawing";
  if (frame.state === "drawing") return "drawing";
  if (drawnUntil > Date.now()) return "drawn";
  if (frame.state === "paused") return frame.state;
  if (frame.held || frame.state === "held") return "held";
  if (frame.position > 0 && frame.position <= 10) return "near";
  return frame.full || frame.state === "full" ? "full" : "waiting";
}

// --- The page ---------------------------------------------------------------

const text = (el, value) => el.textContent !== value && (el.textContent = value);

let shown = null; // the number on the page
let step = 0;
function big(value) {
  cancelAnimationFrame(step);
  const el = $("big");
  const put = (s) => {
    text(el, s);
    el.dataset.size = s.length <= 5 ? "l" : s.length <= 7 ? "m" : "s";
  };
  if (typeof value !== "number") {
    shown = null;
    return put(value);
  }
  const from = shown ?? value;
  shown = value;
  if (from === value || still.matches || document.hidden) return put(number(value));
  const start = performance.now();
  const run = (t) => {
    const p = Math.min(1, (t - start) / 700);
    put(number(Math.round(from + (value - from) * (1 - (1 - p) ** 3))));
    if (p < 1) step = requestAnimationFrame(run);
  };
  step = requestAnimationFrame(run);
}

const DOOR = new Set(["turn", "bypass"]);
let was = cfg.state;

function render() {
  const s = state();
  const line = $("line");
  const focused = document.activeElement;
  line.dataset.state = s;
  text($("head"), say(s + ".h"));
  text($("lead"), say(s + ".p"));

  const position = frame?.position ?? null;
  const prequeue = frame?.scheduled && position === null;
  if (DOOR.has(s)) {
    text($("bigLabel"), turnEnds ? say("window") : "");
    big(turnEnds ? clock(turnEnds - Date.now()) : "");
  } else if (prequeue) {
    text($("bigLabel"), say("opens"));
    big(clock(opensIn()));
    text($("whenLabel"), say("opensAt"));
    text($("when"), frame.opensAt ? instant(frame.opensAt - skew) : "–");
    text($("ahead"), frame.preCount > 0 ? count("here", frame.preCount) : "");
  } else {
    text($("bigLabel"), say("place"));
    big(position ?? "–");
    text($("whenLabel"), say("wait"));
    text($("when"), frame ? eta(frame.etaSec, frame.state === "paused") : "–");
    text($("ahead"), position === null ? "" : count("ahead", frame.ahead ?? position - 1));
  }

  const done = frame?.passed ? 1 : place.done || 0;
  const percent = Math.floor(done * 100);
  $("fill").style.transform = `translateX(${(words.dir === "rtl" ? 100 : -100) * (1 - done)}%)`;
  $("bar").setAttribute("aria-valuenow", percent);
  const part = done === 1 ? say("progress.done") : slowUntil > Date.now() ? say("progress.slower") : percent ? say("progress.part", { n: percent }) : say("progress.start");
  $("bar").setAttribute("aria-valuetext", part);
  text($("part"), part);

  const go = $("go");
  const target = s === "gone" ? cfg.siteUrl : frame?.passed && door();
  if (target) go.href = target;
  else go.removeAttribute("href");
  text(go, say(s === "gone" ? "site" : "go"));
  text($("again"), say(fate === "left" ? "rejoin" : "again"));
  const next = $("next");
  if (s !== "drawn") text(next, say(DOOR.has(s) ? "next.turn" : frame?.scheduled ? "next.scheduled" : "next.close"));
  else if (!next.children.length) {
    const check = $("proof").cloneNode(true);
    check.removeAttribute("id");
    check.hidden = false;
    next.replaceChildren(say("next.drawn") + " ", check);
  }
  text($("fair"), say(frame?.scheduled || cfg.drawn || drawnUntil ? "fair.draw" : "fair.fifo"));
  $("proof").hidden = !(frame?.scheduled || cfg.drawn || drawnUntil);
  const ref = place.ref || cfg.ref || "";
  text($("ref"), ref);
  $("refWrap").classList.toggle("none", !ref);
  $("leave").classList.toggle("none", !frame || !!frame.passed);

  const label = { turn: say("turn.h"), bypass: say("bypass.h") }[s];
  document.title = `${label || (prequeue ? $("big").textContent : position !== null ? number(position) : say(s + ".h"))} · ${cfg.roomName}`;
  speak(s, position);
  if (s !== was) {
    was = s;
    if (s === "turn") tell();
    // Who stood on a button that is gone stays where it was.
    if (focused !== document.body && (!focused.getClientRects().length || getComputedStyle(focused).visibility === "hidden")) line.focus({ preventScroll: true });
  }
}

function news() {
  const message = frame && "message" in frame ? frame.message : cfg.branding?.message;
  const at = frame?.messageAt ?? cfg.branding?.messageAt;
  const box = $("news");
  const body = message || say("news.none");
  if ($("newsText").textContent.trim() !== body.trim()) {
    box.classList.add("live");
    text($("newsText"), body);
    if (message) announce(`${say("news")}: ${message}`);
  }
  box.classList.toggle("has", !!message);
  if (box.classList.contains("live")) box.tabIndex = box.scrollHeight > box.clientHeight ? 0 : -1;
  text($("newsAt"), message && at ? instant(at - skew) : "");
}

// A change of state at once; of place at most once a minute, or near the end.
let said = { state: cfg.state, place: null, at: Date.now() };
const NEAR = new Set([10, 5, 3, 2, 1]);
let saying = []; // what comes up together is read together
function announce(sentence) {
  if (saying.push(sentence) > 1) return;
  queueMicrotask(() => {
    $("say").textContent = saying.join(" ");
    saying = [];
  });
}
function speak(s, position) {
  const where = position === null ? "" : say("say.place", { n: number(position), eta: say("say.wait", { eta: eta(frame.etaSec, frame.state === "paused") }) });
  const due = NEAR.has(position) || Date.now() - said.at >= 60_000;
  if (s !== said.state) announce(`${say(s + ".h")}. ${say(s + ".p")} ${where}`);
  else if (where && position !== said.place && due && !frame.passed) announce(where);
  else return;
  said = { state: s, place: position, at: Date.now() };
}

// --- The turn ---------------------------------------------------------------

let asked = false; // the visitor wants a notification
function tell() {
  try {
    if (navigator.userActivation?.hasBeenActive) navigator.vibrate?.(200);
    if (asked && document.hidden) new Notification(say("turn.h"), { body: cfg.roomName, tag: "qm-" + roomId });
  } catch {} // not allowed here; the page itself says it
}

// Where the door is, if it is a place that a browser may be sent to.
function door() {
  if (!frame.redirectUrl) return "";
  try {
    const url = new URL(frame.redirectUrl, location.href);
    return /^https?:$/.test(url.protocol) ? url.href : "";
  } catch {
    return "";
  }
}

let moving = 0;
let movedAt = 0;
let moves = [0, 0, 0]; // the last three of this tab
try {
  moves = JSON.parse(sessionStorage[store.key]) || moves;
} catch {}
// By itself the page moves three times in ten minutes at most: a site that sends people back must not become
// a loop. Nor again while it may be on its way. The button always moves.
const mayMove = () => trouble !== "offline" && Date.now() - movedAt > 60_000 && Date.now() - moves[0] > 600_000;

function move() {
  moving = 0;
  const to = frame?.passed && door();
  if (!to) return;
  stop();
  movedAt = Date.now();
  moves = [moves[1], moves[2], movedAt];
  try {
    sessionStorage[store.key] = JSON.stringify(moves);
  } catch {}
  location.replace(to); // so that Back does not lead into a line that is over
  soon(resync, 20_000); // still here: a door may be a download, or slow
}

// --- Frames -----------------------------------------------------------------

function apply(next) {
  lastFrame = Date.now();
  trouble = fate = "";
  if (next.now) skew = next.now - Date.now();
  if (next.expired) {
    if (next.reason === "left") return finish("left");
    lapsed = next.reason === "expired" ? "expired" : "reset";
    lapsedUntil = 0;
    frame = null;
    render();
    return rejoin();
  }
  if (next.token && same(nameOf(next.token))) hold(next.token);
  if (next.ref) place.ref = next.ref; // it comes with a token: not in every frame
  frame = next;
  slower(next);
  if (Date.now() - rejoinedAt > 60_000) lapses = 0;
  if (lapsed && !lapsedUntil) lapsedUntil = Date.now() + 45_000;
  const { position } = next;
  if (position > 0) {
    place.first ??= position;
    place.done = Math.max(place.done || 0, 1 - position / Math.max(place.first, position));
    store.save();
  }
  if (next.passed) {
    const left = next.expiresInSec ?? next.passedTtlSec;
    if (left && (!turnEnds || next.expiresInSec != null)) turnEnds = Date.now() + left * 1000;
    if (door() && mayMove()) moving ||= setTimeout(() => (mayMove() ? move() : (moving = 0)), 1500);
  } else {
    clearTimeout(moving);
    moving = turnEnds = 0;
  }
  news();
  render();
  // The doors opened: the handle becomes the ticket that was drawn for it. Everyone's does now, so not at once.
  if (place.name?.startsWith("q") && !next.scheduled && !next.passed && next.state !== "drawing") rejoin(5000);
}

// slower notices that the turn comes much later than was said, so that the page can say that too.
function slower({ etaSec, passed }) {
  if (etaSec == null || passed) return void (due = 0);
  const at = Date.now() + etaSec * 1000;
  const later = due && at - due > Math.max(120_000, etaSec * 400);
  if (later) slowUntil = Date.now() + 60_000;
  if (!due || later || at < due) due = at;
}

function finish(why) {
  stop();
  fate = why;
  if (why === "left") {
    place = {};
    store.save();
  }
  if (why === "gone" && (place.token || frame)) lapsed = "reset"; // if it is made again
  frame = null;
  render();
}

// --- The wire ---------------------------------------------------------------

const api = base + "/api/v1";
async function call(route, body) {
  const answer = await fetch(api + route, {
    cache: "no-store",
    signal: AbortSignal.timeout?.(10_000),
    ...(body && { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) }),
  });
  const data = await answer.json().catch(() => ({}));
  return { status: answer.status, data, after: 1000 * Math.min(300, Number(answer.headers.get("Retry-After")) || 0) };
}

function query() {
  const q = new URLSearchParams({ roomId });
  if (place.token) q.set("token", place.token);
  if (cfg.returnUrl) q.set("qm_return", cfg.returnUrl);
  return "?" + q;
}

let source = null;
let timer = 0; // the one next step
let fails = 0; // answers in a row that were none
let streamFails = 0;
let streamFrom = 0; // no stream before this instant
let notBefore = 0; // the server asked to be left alone until then
let run = 0; // grows when everything under way becomes void

function stop() {
  run++;
  source?.close();
  source = null;
  clearTimeout(timer);
}
function soon(step, ms) {
  clearTimeout(timer);
  const mine = run;
  timer = setTimeout(() => mine === run && step(), ms);
}
const backoff = (after = 0) => Math.max(after, Math.min(30_000, 1000 * 2 ** Math.min(fails, 5))) + Math.random() * 1000;

// trip tries step again later and says so once it takes longer than a hiccup.
function trip(why, step, after) {
  fails++;
  if (!navigator.onLine) why = "offline";
  if (why === "offline" || why === "backend" || why === "busy" || fails > 2) trouble = why;
  render();
  soon(step, backoff(after));
}

// refused reads an answer that gives no place.
function refused({ status, data, after }, step) {
  const joining = step === join;
  notBefore = Date.now() + after;
  switch (data.code) {
    case "room_not_found":
    case "room_idle":
      finish("gone");
      return soon(join, Math.max(after, jitter(30_000))); // it may be made again
    case "blocked_by_protection":
      // A proof is taken back where a limit or an outage came between, or where it is too old: then another is found, a few times.
      if (!data.work || proofs++ > 2) return finish("refused");
      doorway ||= reach(); // the page is older than the protection, or was made while the room could not be asked
      return doorway.then((earn) => earn(data.work)).then(join, () => finish("refused"));
    case "queue_identity_limit":
    case "prequeue_identity_limit":
      finish("toomany");
      return soon(join, Math.max(after, jitter(45_000)));
    case "prequeue_full":
    case "room_full":
      finish("linefull");
      return soon(join, Math.max(after, jitter(10_000)));
    case "room_damaged":
    case "storage_unavailable":
      return trip("backend", step, after);
  }
  if (status === 429) return trip(joining && !frame ? "busy" : trouble || "reconnecting", step, after);
  if (status === 200) return trip("reconnecting", step, after); // somebody else's answer, as from a hotel's network
  if (status === 502 || status === 503 || status === 504) return trip("restarting", step, after);
  if (status === 401 || (joining && status === 400 && place.token)) {
    // The token is no token any more. Once: a browser that keeps nothing would ask for ever.
    if (rejoins++ < 1) {
      if (joining) place = {};
      return rejoin();
    }
    return finish("cookies");
  }
  return trip("fault", step, Math.max(after, 15_000));
}

let rejoins = 0; // because of 401, since the last good frame
let lapses = 0; // places lost in a row: a loop must not become a flood
let rejoinedAt = 0;
function rejoin(spread = 300) {
  stop();
  lapses++;
  rejoinedAt = Date.now();
  soon(join, lapses > 3 ? backoff(10_000) : Math.random() * spread);
}

// What a room with protection is told beside. The module fills it in; where it is not reached, what is not known is not said.
const knock = { stamp: cfg.stamp };
let proofs = 0; // that were asked for, since the last place
const reach = () => import("./waiting-door.js").then(({ open }) => open(knock), () => {});
let doorway = cfg.stamp && reach();

async function join() {
  const mine = ++run;
  let answer;
  try {
    await doorway;
    answer = await call("/join", { roomId, ...knock, token: place.token, qm_return: cfg.returnUrl });
  } catch {
    return mine === run && trip("reconnecting", join);
  }
  if (mine !== run) return;
  if (!answer.data?.state) return refused(answer, join);
  delete knock.work; // it is good for one place
  proofs = 0;
  fails = 0;
  hold(answer.data.token);
  mailed(answer.data.notify);
  apply({ ...answer.data, expired: false });
  if (mine === run) stream();
}

async function poll() {
  const mine = run;
  let answer;
  try {
    answer = await call("/status" + query());
  } catch {
    return mine === run && trip("reconnecting", poll);
  }
  if (mine !== run) return;
  if (!answer.data?.state && !answer.data?.expired) return refused(answer, poll);
  fails = rejoins = 0;
  apply(answer.data);
  if (mine !== run) return;
  if (Date.now() >= streamFrom) stream();
  else soon(poll, Math.min(jitter(pollMs), frame?.scheduled && opensIn() > 0 ? opensIn() + Math.random() * 3000 : pollMs * 2));
}

function stream() {
  stop();
  const mine = run;
  const es = (source = new EventSource(api + "/events" + query()));
  let began = Date.now();
  let heard = false;
  let back = false; // the browser is coming back to a stream that was good
  es.onopen = () => (began = Date.now());
  es.addEventListener("status", (event) => {
    if (mine !== run) return;
    heard = true;
    fails = rejoins = 0;
    apply(JSON.parse(event.data));
  });
  es.addEventListener("refresh", () => {
    // The server ends the stream so that the next one can renew the cookies.
    if (mine === run) soon(stream, Date.now() - began < 10_000 ? jitter(5000) : 0);
    es.close();
  });
  es.onerror = () => {
    if (mine !== run) return;
    // One that is refused, or cut short again and again, is left alone for longer each time.
    if (heard && Date.now() - began > 10_000) streamFails = 0;
    else if (!back || heard) streamFails++;
    const good = (heard || back) && streamFails < 3;
    // The browser comes back by itself, and when the server's retry says: after a restart each page has a moment of its own.
    if (good && heard && es.readyState === EventSource.CONNECTING) {
      heard = false;
      back = true;
      es.since = Date.now() + 15_000 + Math.random() * 15_000; // waited for, but not for ever
      return;
    }
    es.close();
    source = null;
    streamFrom = Date.now() + (good ? 0 : jitter(Math.min(120_000, 15_000 * 2 ** streamFails)));
    soon(poll, Math.random() * (good ? 5000 : 300));
  };
}

// What slept, was offline or came back from the history asks at once.
function resync() {
  if (fate === "left" || fate === "refused" || fate === "cookies") return;
  stop();
  fails = 0;
  streamFrom = 0;
  soon(place.token || frame ? poll : join, Math.max(0, notBefore - Date.now()));
}

// --- The browser ------------------------------------------------------------

addEventListener("online", () => {
  if (trouble === "offline") trouble = frame ? "reconnecting" : "";
  render();
  soon(resync, Math.random() * 500);
});
addEventListener("offline", () => {
  trouble = "offline";
  render();
});
document.addEventListener("visibilitychange", () => {
  if (!document.hidden && Date.now() - lastFrame > 6000) resync();
});
addEventListener("resize", news); // what did not fit may fit now, and the other way round
addEventListener("pagehide", stop);
addEventListener("pageshow", (event) => event.persisted && resync());
addEventListener("storage", (event) => {
  if (event.key !== store.key) return;
  if (!event.newValue) return place.token && !fate ? resync() : undefined; // left in another tab, or the line has ended
  const other = store.load(); // another tab of this visitor: one visitor, one place
  if (other.name !== place.name) {
    place = other;
    resync();
  } else place.token = other.token;
});

let tick = Date.now();
setInterval(() => {
  const now = Date.now();
  const slept = now - tick > 5000;
  tick = now;
  if (lapsedUntil && now > lapsedUntil) lapsed = "";
  // A connection can be dead without a word: frames come every five seconds.
  if (!fate && ((slept && now - lastFrame > 6000) || (source && now - lastFrame > 15_000 && now - (source.since ??= now) > 15_000))) resync();
  else if (frame || fate) render();
}, 1000);

$("again").onclick = (event) => {
  event.preventDefault();
  fate = "";
  frame = null;
  lapsed = "";
  fails = rejoins = 0;
  render();
  join();
};
$("go").onclick = (event) => {
  if (!frame?.passed) return; // a link to the site
  event.preventDefault();
  clearTimeout(moving);
  move();
};
const ask = $("ask");
const askText = $("askText");
$("leave").onclick = () => {
  const n = frame?.position;
  text(askText, n ? say("leave.place", { n: number(n) }) : say("leave.any"));
  ask.showModal();
};
ask.addEventListener("close", async () => {
  if (ask.returnValue !== "leave") return;
  ask.returnValue = "";
  const { status } = await call("/leave", { roomId, token: place.token }).catch(() => ({}));
  if (status === 200 || status === 401) finish("left");
  else if (status === 404) finish("gone");
  else if (!fate && !frame?.passed && !ask.open) {
    text(askText, say("leave.failed"));
    ask.showModal();
  }
});

// The box for an address; its module comes when it is opened.
const box = $("mailme");
let held; // what the server says it holds: undefined when it has said nothing
let showMail;
function mailed(statement) {
  if (!box || statement === undefined) return;
  held = statement;
  box.classList.remove("none");
  showMail?.(held);
}
const post = (email) => call("/notify", { roomId, token: place.token, email });
box?.addEventListener("toggle", async () => {
  if (showMail || !box.open) return;
  showMail = () => {}; // under way
  try {
    const module = await import("./waiting-mail.js");
    showMail = await module.ready(`${base}/notify/box?lang=${words.lang}`, announce, post);
    showMail(held);
  } catch {
    showMail = undefined;
    box.open = false; // not reached: opening it tries again
  }
});

const bell = $("notify");
if ("Notification" in window && isSecureContext && Notification.permission !== "denied") {
  bell.classList.remove("none");
  const ring = async () => {
    asked = (await Notification.requestPermission()) === "granted";
    bell.ariaDisabled = "true";
    text(bell, say(asked ? "notify.on" : "notify.off"));
  };
  bell.addEventListener("click", ring, { once: true });
}

if (cfg.first?.now) skew = cfg.first.now - Date.now();
news();
if (frame) render();
if (cfg.retry) soon(join, jitter(pollMs));
else join();
