// The operators' console: its shell, who is signed in, and which page is shown.
// Figures come as frames from /api/admin/events (full, then deltas); every act
// answers in its own place. Nothing is invented: what the server did not say
// shows as a dash.

import { api, connect, disconnect, forget, hear, lastFrame, lost, rooms, session, take, totals } from "./feed.js";
import { $, el, people, put } from "./parts.js";
import { findPage, pages } from "./pages.js";
import { signInPage } from "./signin.js";

const main = $("main");

// --- The page that is shown ---------------------------------------------------------

let page = null; // {node, draw?(), leave?()}
let turn = 0; // grows with each way that is taken, so that a slow module does not overtake
function show(title, next) {
  turn++;
  page?.leave?.();
  document.title = title ? `${title} · Queue Manager` : "Queue Manager";
  main.replaceChildren(next.node);
  page = next;
  scrollTo(0, 0);
  next.draw?.(null);
}

function draw(changed) {
  const n = totals.waiting ?? rooms.reduce((sum, r) => sum + (r.waiting || 0), 0);
  put($("totals"), lastFrame ? `${people(n)} waiting in ${rooms.length === 1 ? "1 room" : rooms.length + " rooms"}` : "");
  page?.draw?.(changed);
}

function signIn(why) {
  session.end();
  if (page?.signIn) return page.signIn(why); // a key that is being typed stays
  disconnect();
  lost("");
  forget();
  put($("totals"), "");
  $("me").hidden = $("nav").hidden = true;
  const next = signInPage(why, start);
  show("Sign in", next);
  next.focus();
}

// --- Ways -----------------------------------------------------------------------------

const address = () => location.hash.slice(1) || "/";

async function route() {
  if ($("me").hidden) return;
  menu(false);
  const found = findPage(address());
  mark(found?.page);
  const mine = ++turn;
  if (!found || !session.may(found.page.role)) {
    const why = found ? "Your role does not reach this page. An owner can give you a key with another role." : "There is no such page.";
    return show("Not here", { node: el("div.first", {}, el("div.panel", {}, el("h1", {}, found ? found.page.title : "Not here"), el("p", {}, why), el("p", {}, el("a", { href: "#/" }, "Back to the rooms")))) });
  }
  let made;
  try {
    made = (await found.page.load()).page(found.params);
  } catch (e) {
    // A new build has other modules: this page is to be loaded again.
    console.warn(e);
    made = { node: el("div.first", {}, el("div.panel", {}, el("h1", {}, "This page did not load"), el("p", {}, "The server may have been renewed meanwhile."), el("p", {}, el("button.main", { type: "button", onclick: () => location.reload() }, "Load again")))) };
  }
  if (mine !== turn) return made.leave?.();
  show(made.title || found.page.title, made);
  if (document.activeElement === document.body && moved) main.focus({ preventScroll: true });
}
let moved = false;
addEventListener("hashchange", () => {
  moved = true;
  route();
});

// bar fills the navigation bar with what this role may see.
function bar() {
  $("nav").replaceChildren(...pages.filter((p) => p.nav && session.may(p.role)).map((p) => el("a", { href: "#" + p.path }, p.nav)));
  put($("who"), session.name ? `${session.name}, ${session.role === "monitor" ? "looking on" : session.role}` : "");
  $("nav").hidden = $("me").hidden = false;
}
function mark(at) {
  const top = at && "#" + (at.nav ? at.path : pages.find((p) => p.nav && p.path !== "/" && at.path.startsWith(p.path))?.path || "/");
  for (const a of $("nav").children) {
    if (a.getAttribute("href") === top) a.setAttribute("aria-current", "page");
    else a.removeAttribute("aria-current");
  }
}
function menu(open) {
  $("menu").setAttribute("aria-expanded", String(open));
  $("nav").classList.toggle("open", open);
}
$("menu").addEventListener("click", () => menu($("menu").getAttribute("aria-expanded") !== "true"));

// --- Keys -------------------------------------------------------------------------------

async function palette(help) {
  const { open } = await import("./palette.js");
  open(help, page?.acts?.() || []);
}
$("keys").addEventListener("click", () => palette(false));
addEventListener("keydown", (event) => {
  if ($("me").hidden || event.isComposing || document.querySelector("dialog[open]")) return;
  const typing = event.target.closest?.("input, textarea, select, [contenteditable]");
  if (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey) && !event.altKey) event.preventDefault(), palette(false);
  else if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
  else if (event.key === "k") event.preventDefault(), palette(false);
  else if (event.key === "?") event.preventDefault(), palette(true);
});

// --- Beginning and end --------------------------------------------------------------------

setInterval(() => lastFrame && Date.now() - lastFrame > 3000 && draw(new Set()), 1000);
addEventListener("pageshow", (event) => event.persisted && lastFrame && connect());
document.addEventListener("visibilitychange", () => !document.hidden && lastFrame && Date.now() - lastFrame > 10_000 && connect());
$("signout").addEventListener("click", async () => {
  try {
    if (!session.link) await api("DELETE", "/session");
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
  session.takeLink();
  if (!session.alive()) return signIn("");
  let listed;
  try {
    const [me, list] = await Promise.all([session.role ? null : api("GET", "/session"), api("GET", "/rooms")]);
    if (me) session.is(me);
    listed = list;
  } catch (e) {
    if (e.status === 401) return;
    lost(e.message);
    retry = setTimeout(start, 3000);
    return;
  }
  lost("");
  take({ rooms: Array.isArray(listed) ? listed : listed.rooms, totals: listed.totals });
  bar();
  draw(null);
  route();
  connect();
}
start();
