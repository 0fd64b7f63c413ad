// The script tag that puts a site behind a waiting room (seed 004, Edge check; contract.md 19):
//
//   <script src="https://queue.example/snippet/qm.js" data-room="shop"></script>
//
// It asks the queue server whether this visitor may see this page, sends who may not to the line, and back to the exact address
// afterwards. Put it first in <head>; with async it works too, but what runs before it sees the address with the hand-over code.
//
//   data-room     the room's id
//   data-base     where the queue server is; else where this file came from. For a site that serves a copy of its own
//   data-fail     what happens when the server gives no answer: "closed" (to the line, the default) or "open" (the page)
//   data-timeout  how long an answer may take, 100 to 10,000 ms; 2,000 by default. Nothing here blocks for longer
//   data-hide     present: the page is invisible until the first decision, or until the time is over
//
// A tag manager that sets no attributes may write them into the address: qm.js?room=shop&fail=open.
//
// What it decided: window.qm.state[room] and the event "qm:decision" on document have {room, decision, reason};
// <html data-qm="pass session"> has the latest, for style sheets. The decision is "pass" or "queue" by the server's word, "open" or
// "closed" without it, for the reasons in edge/connector/README.md; "redirected" too, which is not followed, and "loop": the
// visitor came back from the line three times within a minute, is sent there again, and is shown the page instead.
//
// When a checkout is done, call qm.leave(): the place goes to the next in line. qm.check() asks again, qm.watch({room: "two"})
// adds a room; both give a promise of the decision.
//
// This runs on other people's pages: one global, nothing on the console, no eval, no inline style. Browsers since 2019. It keeps
// honest browsers in line; whoever wants to be sure puts a connector on the server.
(() => {
  "use strict";

  const tag = document.currentScript || [...document.querySelectorAll('script[src*="/snippet/qm.js"]')].pop();
  const known = window.qm;

  // --- The settings of a tag ------------------------------------------------

  function settings() {
    if (!tag) return {};
    const src = new URL(tag.src, location.href);
    const said = (name) => {
      const value = tag.getAttribute("data-" + name);
      return value === null ? src.searchParams.get(name) : value;
    };
    const from = src.href.split("/snippet/qm.js");
    return { room: said("room"), base: said("base") || (from[1] === undefined ? "" : from[0]), fail: said("fail"), timeout: said("timeout"), hide: said("hide") !== null };
  }
  if (known && known.watch && known.state) return void known.watch(settings());

  const root = document.documentElement;
  const rooms = {};
  const state = {};

  // --- The address bar ------------------------------------------------------

  let code = ""; // the hand-over code that this page was reached with
  let tries = ""; // when this tab was sent away, where no storage can say it

  // What a code, a key or a token is made of. Anything else is none, whoever wrote it.
  const sound = (s) => (typeof s === "string" && /^(?!(null|undefined)$)[\w.-]{1,1024}$/.test(s) ? s : "");

  // clean takes what is ours out of an address and leaves every other byte as it is.
  function clean(href) {
    const [, path, query = "", hash = ""] = /^([^?#]*)(\?[^#]*)?(#[^]*)?$/.exec(href);
    const pairs = query.slice(1).split("&");
    const rest = pairs.filter((pair) => {
      const [, name, value] = /^(qm_code|qm_try)=(.*)$/.exec(pair) || [];
      if (name === "qm_code") code = sound(value);
      if (name === "qm_try") tries = value;
      return !name;
    });
    return path + (rest.length === pairs.length ? query : rest.length ? "?" + rest.join("&") : "") + hash;
  }

  // add puts a parameter beside those that an address has, before its fragment.
  function add(href, name, value) {
    const [, path, hash = ""] = /^([^#]*)(#[^]*)?$/.exec(href);
    return path + (path.includes("?") ? "&" : "?") + name + "=" + value + hash;
  }

  const longest = 4096; // what an address may have, so that requests which carry it stay below the limits on the way

  const replaceState = history.replaceState;
  // tidy shows the address without what is ours, in the same entry of the history and with its state.
  function tidy() {
    const href = clean(location.href);
    if (href === location.href) return;
    try {
      replaceState.call(history, history.state, "", href);
    } catch {} // a browser that allows no more of these for now; the code is spent by the check that follows
  }

  // --- What this browser keeps ----------------------------------------------

  const memory = {}; // of what could not be stored
  function read(area, key) {
    if (key in memory) return memory[key];
    try {
      return window[area].getItem(key);
    } catch {
      return null;
    }
  }
  function write(area, key, value) {
    try {
      if (value) window[area].setItem(key, value);
      else window[area].removeItem(key);
      delete memory[key];
      return true;
    } catch {
      memory[key] = value;
    }
  }

  // The door key and the token of a room. In localStorage, so that a link opened in a new tab stays inside.
  const door = (room) => read("localStorage", room.key);
  function parse(kept) {
    try {
      return JSON.parse(kept) || {};
    } catch {
      return {};
    }
  }

  // --- The wire -------------------------------------------------------------

  const prefixes = {}; // by server; one is here once it was tried both ways
  // call asks under /api/v1, and once a page under /api, when the server does not know the prefix. A browser hides an answer
  // without CORS headers, as that 404 may be, and calls it a failed request.
  async function call(room, path, init) {
    const known = prefixes[room.base];
    let answer, failed;
    try {
      answer = await fetch(room.base + (known || "/api/v1") + path, init);
    } catch (e) {
      failed = e;
    }
    if (!known && (failed ? failed.name !== "AbortError" : answer.status === 404)) {
      prefixes[room.base] = "/api/v1";
      const other = await fetch(room.base + "/api" + path, init);
      if (other.status !== 404) prefixes[room.base] = "/api";
      return other;
    }
    if (failed) throw failed;
    return answer;
  }

  async function ask(room) {
    const kept = door(room);
    const { sess, token } = parse(kept);
    const page = clean(location.href).split("#")[0]; // the fragment is nobody's business
    const shown = room.shown === code ? "" : code;
    const query = new URLSearchParams({ roomId: room.id });
    if (page.length <= longest) query.set("url", page);
    if (sound(token)) query.set("token", token);
    if (shown) query.set("code", shown);
    const stop = (room.stop = new AbortController());
    room.coded = shown;
    const timer = setTimeout(() => stop.abort(), room.timeout);
    try {
      const answer = await call(room, "/check?" + query, {
        cache: "no-store",
        redirect: "manual", // elsewhere is nobody who should see a key
        headers: sound(sess) ? { "X-QM-Session": sess } : {},
        signal: stop.signal,
      });
      if (answer.status !== 200) return failure(room, answer.status ? "status_" + answer.status : "redirected");
      const v = parse(await answer.text());
      if (v.action !== "pass" && v.action !== "queue") return failure(room, "bad_answer");
      if (shown) room.shown = shown;
      if (sound(v.sess)) write("localStorage", room.key, JSON.stringify({ sess: v.sess, token: sound(v.token) || token }));
      else if (v.clearToken) {
        // Another tab may have come through meanwhile: then its key is asked about, not dropped.
        if (door(room) !== kept) return ask(room);
        write("localStorage", room.key, "");
      }
      const reason = typeof v.reason === "string" && /^[a-z0-9_]{1,64}$/.test(v.reason) ? v.reason : "unspecified";
      return { decision: reason === "no_room" && v.action === "pass" ? "open" : v.action, reason, line: v.waitingRoomUrl };
    } catch {
      return failure(room, stop.signal.aborted ? "timeout" : "unreachable");
    } finally {
      clearTimeout(timer);
    }
  }

  const failure = (room, reason) => ({ decision: room.fail, reason });

  // --- Decisions ------------------------------------------------------------

  let leaving = false;
  let here = "";
  const where = () => location.pathname + location.search;

  // check decides about the page as it is when the answer is there: one that was left meanwhile is nobody's question any more. A
  // request with a code is never given up, since nobody could present that code again.
  function check(room) {
    if (room.busy) {
      if (room.asked !== here && !room.coded) room.stop.abort();
      return room.busy;
    }
    return (room.busy = (async () => {
      let v;
      do {
        room.asked = here;
        v = await ask(room);
      } while (room.asked !== here);
      room.busy = null;
      if (v.decision !== "pass" && v.decision !== "open" && !leaving) v = away(room, v);
      return settle(room, v);
    })());
  }

  // away sends the visitor to the line, unless that was done three times within the last minute: then the page is shown, and says
  // why. Where nothing can be stored, the times travel with the way back.
  function away(room, v) {
    const now = Date.now();
    const times = (read("sessionStorage", "qm.away") || tries).split(".").filter((t) => Math.abs(now - parseInt(t, 36)) < 60000);
    if (times.length > 2) return { decision: "open", reason: "loop" };
    times.push(now.toString(36));
    const sent = times.join(".");
    let back = clean(location.href);
    if (!write("sessionStorage", "qm.away", sent)) back = add(back, "qm_try", sent);
    const line = /^https?:\/\/[!-~]+$/.test(v.line) ? v.line : room.base + "/w/" + encodeURIComponent(room.id);
    leaving = true;
    location.replace(back.length > longest ? line : add(line, "qm_return", encodeURIComponent(back)));
    return v;
  }

  function settle(room, { decision, reason }) {
    const detail = (state[room.id] = { room: room.id, decision, reason });
    root.dataset.qm = decision + " " + reason;
    if (decision === "pass" || decision === "open") show(room);
    document.dispatchEvent(new CustomEvent("qm:decision", { detail }));
    return detail;
  }

  const hiding = new Set();
  function show(room) {
    if (hiding.delete(room) && !hiding.size) root.style.removeProperty("visibility");
  }

  function all() {
    leaving = false;
    return Promise.all(Object.values(rooms).map(check));
  }

  let timer;
  function moved() {
    tidy();
    if (where() === here) return;
    here = where();
    clearTimeout(timer);
    timer = setTimeout(all, 50);
  }

  // --- What the page may call -----------------------------------------------

  function watch(o) {
    const id = o.room;
    const base = String(o.base || "").replace(/\/+$/, "");
    if (!id || !base) return Promise.resolve(settle({ id: id || "" }, { decision: "open", reason: "not_configured" }));
    if (rooms[id]) return rooms[id].busy || Promise.resolve(state[id]);
    const ms = Number(o.timeout) || 2000;
    const room = (rooms[id] = { id, base, key: "qm.door:" + id, fail: o.fail === "open" ? "open" : "closed", timeout: Math.min(10000, Math.max(100, ms)), shown: "" });
    if (o.hide) {
      hiding.add(room);
      root.style.setProperty("visibility", "hidden", "important");
      setTimeout(show, room.timeout, room);
    }
    return check(room);
  }

  // leave gives the place of a room back, or of all rooms on the page: true when there was one.
  async function leave(id) {
    let left = false;
    for (const room of Object.values(rooms)) {
      if (id && id !== room.id) continue;
      const { sess, token } = parse(door(room));
      try {
        const answer = await call(room, "/leave?roomId=" + encodeURIComponent(room.id), {
          method: "POST",
          keepalive: true,
          headers: { "Content-Type": "application/json", ...(sess && { "X-QM-Session": sess }) },
          body: JSON.stringify({ roomId: room.id, token }),
        });
        if (!answer.ok) continue;
        left = (await answer.json()).left || left;
        write("localStorage", room.key, "");
      } catch {} // a door session that cannot be given back ends by itself
    }
    return left;
  }

  tidy();
  here = where();
  for (const name of ["pushState", "replaceState"]) {
    const original = history[name];
    history[name] = function () {
      const result = original.apply(this, arguments);
      moved();
      return result;
    };
  }
  addEventListener("popstate", moved);
  addEventListener("pageshow", (event) => event.persisted && all());
  if (!known || known.nodeType) window.qm = { version: "1.0.0", state, watch, check: all, leave }; // else the name is the page's own
  watch(settings());
})();
