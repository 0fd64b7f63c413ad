// The operators' console. Figures come as frames from /api/admin/events (full,
// then deltas); every act answers in its own place. Nothing is invented: what
// the server did not say shows as a dash.

import { api, connect, depth, disconnect, find, forget, hear, lastFrame, learn, lost, rooms, session, take, totals } from "./console-feed.js";
import { $, el, eta, fail, field, graph, num, people, preOf, put, rateOf, since, stale, stateOf } from "./console-parts.js";
import { room } from "./console-room.js";

const main = $("main");

// --- Pages ------------------------------------------------------------------------

let page = null; // {draw(), leave?()}
function show(title, next) {
  page?.leave?.();
  document.title = title ? `${title} · Queue Manager` : "Queue Manager";
  main.replaceChildren(next.node);
  page = next;
  scrollTo(0, 0);
  next.draw?.();
}
function draw() {
  const n = totals.waiting ?? rooms.reduce((sum, r) => sum + (r.waiting || 0), 0);
  put($("totals"), lastFrame ? `${people(n)} waiting in ${rooms.length === 1 ? "1 room" : rooms.length + " rooms"}` : "");
  page?.draw?.();
}

function signIn(why) {
  session.end();
  if (page?.signIn) return page.signIn(why); // a key that is being typed stays
  disconnect();
  lost("");
  forget();
  put($("totals"), "");
  $("signout").hidden = true;
  const key = el("input", { id: "key", type: "password", autocomplete: "current-password", required: true, "aria-describedby": "keyOut" });
  const out = el("p.out", { id: "keyOut", role: "status" }, why || "");
  const button = el("button.main", { type: "submit" }, "Sign in");
  const say = (sentence) => {
    fail(out, { message: sentence });
    button.disabled = false;
  };
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
          say(e.message);
          key.setAttribute("aria-invalid", "true");
          key.select();
        }
      },
    },
    el("h1", {}, "Sign in"),
    el("p", {}, "With the admin key that this server was started with."),
    el("div.field", {}, el("label", { for: "key" }, "Key"), key),
    out,
    el("div.row", {}, button),
  );
  show("Sign in", { node: el("div.first", {}, form), signIn: say });
  key.focus();
}

function overview() {
  const age = el("p.age", {});
  const body = el("tbody");
  const table = el(
    "table.rooms",
    {},
    el("thead", {}, el("tr", {}, ...["Room", "State", "Waiting", "In a minute", "Out a minute", "Oldest wait", "Wait if you join now", "Lately"].map((h, i) => el(i > 1 && i < 7 ? "th.num" : "th", { scope: "col" }, h)))),
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
        since(c.oldest, r.oldestWaitSec);
        put(c.eta, eta(r));
        c.spark.replaceChildren(graph("spark", depth.get(r.id)));
      }
      stale(node, age, lastFrame);
    },
  });
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
          learn(await api("POST", "/rooms", body));
          location.hash = "#/rooms/" + encodeURIComponent(body.id);
        } catch (e) {
          fail(out, e);
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

// --- Routes -----------------------------------------------------------------------

// named reads an id from an address that may be anybody's typing.
function named(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function route() {
  if ($("signout").hidden) return;
  const [, where, id] = location.hash.split("/");
  if (where === "new") create();
  else if (where === "rooms" && id) show(named(id), room(named(id)));
  else overview();
}
addEventListener("hashchange", () => {
  route();
  if (document.activeElement === document.body) main.focus({ preventScroll: true });
});
setInterval(() => lastFrame && Date.now() - lastFrame > 3000 && draw(), 1000);
addEventListener("pageshow", (event) => event.persisted && lastFrame && connect());
document.addEventListener("visibilitychange", () => !document.hidden && lastFrame && Date.now() - lastFrame > 10_000 && connect());
$("signout").addEventListener("click", async () => {
  try {
    await api("DELETE", "/session");
  } catch (e) {
    if (e.status !== 401) return lost(`You are still signed in: ${e.message}`);
  }
  signIn("You are signed out.");
});

hear.frame = draw;
hear.end = signIn;

let retry = 0;
async function start() {
  clearTimeout(retry);
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
  $("signout").hidden = false;
  draw();
  route();
  connect();
}
start();
