// What the console's pages are made of: elements, words for figures and
// times, graphs, tables, and acts that answer in their own place.

export const $ = (id) => document.getElementById(id);
const nf = new Intl.NumberFormat();
export const num = (v) => (typeof v === "number" ? nf.format(v) : "–");
export const people = (n) => (n === 1 ? "1 person" : `${num(n)} people`);

// el("p.soft", {title: "…"}, child, …) makes an element.
export function el(what, attrs, ...children) {
  const [tag, ...classes] = what.split(".");
  const node = document.createElement(tag);
  if (classes.length) node.className = classes.join(" ");
  for (const [k, v] of Object.entries(attrs || {})) {
    if (k.startsWith("on")) node.addEventListener(k.slice(2), v);
    else if (v === true) node.setAttribute(k, "");
    else if (v !== false && v != null) node.setAttribute(k, v);
  }
  node.append(...children.filter((c) => c != null && c !== false));
  return node;
}
export const put = (node, value) => node.textContent !== value && (node.textContent = value);

// --- Words ----------------------------------------------------------------------

export function span(sec) {
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
export const stateOf = (r) => r.effectiveState || r.state || "–";
export const rateOf = (r) => r.ratePerMinute ?? r.rate;
export const preOf = (r) => r.preQueue ?? r.preCount;
export const eta = (r) => (typeof r.estWaitSec === "number" ? (r.estWaitFloor ? "from " : "") + span(r.estWaitSec) : r.estWaitSec === null ? "unknown" : "–");
export const clockOf = (at) => new Date(at).toLocaleTimeString([], { hour12: false });
export const full24 = (at) => new Date(at).toLocaleString([], { dateStyle: "medium", timeStyle: "long" });
// An instant in short, absolute on hover and focus (console.css shows it then).
const absolute = (at) => ({ datetime: new Date(at).toISOString(), title: full24(at), tabindex: 0 });
export const when = (at) => el("time", absolute(at), clockOf(at));
// since shows in a cell how long something has lasted, and on hover and focus since when.
export function since(cell, sec) {
  if (!sec) return put(cell, span(sec));
  const time = cell.querySelector("time") || cell.replaceChildren(el("time")) || cell.firstChild;
  // Not to the second: what is the same instant must not change with each frame.
  const at = Math.round(Date.now() / 1000 - sec) * 1000;
  if (!(Math.abs(at - Date.parse(time.dateTime)) < 3000)) for (const [k, v] of Object.entries(absolute(at))) time.setAttribute(k, v);
  put(time, span(sec));
}
export const lineOf = (id) => `${location.origin}/w/${encodeURIComponent(id)}`;

// What a rate will do, before it is set.
export function rateSays(r, rate) {
  if (!Number.isInteger(rate) || rate < 0 || rate > 100_000) return "A whole number from 0 to 100,000.";
  const n = r.waiting || 0;
  if (rate === 0) return "0 a minute: nobody is let in until you raise it.";
  if (stateOf(r) === "paused") return `${num(rate)} a minute, once the line is active again.`;
  if (!n) return `${num(rate)} a minute: nobody is waiting now.`;
  return `${num(rate)} a minute: the line is gone in ${long((n / rate) * 60)}, if nobody else joins.`;
}

const SPAN = 15 * 60_000; // what a sparkline shows, ms
// graph draws a sparkline of [[ms, number]…].
export function graph(cls, series) {
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

// --- Parts of pages ---------------------------------------------------------------

// head is the top of a page: its only h1, and what belongs beside it.
export const head = (title, ...beside) => el("div.head", {}, el("h1", {}, title), ...beside);

// table is a table that becomes one block a row on a narrow screen.
// columns are {name, num?, cell(row) → text or node}; the first is the row's heading.
// fill(rows) draws the rows; without any the sentence of empty stands there.
export function table(caption, columns, empty) {
  const body = el("tbody");
  const none = el("p.soft", { hidden: true }, empty);
  const node = el("table.cards", {}, el("caption.sr", {}, caption), el("thead", {}, el("tr", {}, ...columns.map((c) => el(c.num ? "th.num" : "th", { scope: "col" }, c.name)))), body);
  const cell = (c, row, first) => {
    const value = c.cell(row) ?? "–";
    return first ? el("th", { scope: "row" }, value) : el(c.num ? "td.num" : "td", { "data-k": c.name }, value);
  };
  return {
    node: el("div.scroll", {}, node, none),
    fill(rows) {
      body.replaceChildren(...rows.map((row) => el("tr", {}, ...columns.map((c, i) => cell(c, row, i === 0)))));
      node.hidden = !rows.length;
      none.hidden = rows.length > 0;
    },
  };
}

// load asks for what a part of a page shows, and says in its place that it is under way or what went wrong, with a way to ask again.
// It answers a function that asks anew.
export function load(place, ask, show) {
  let mine = 0;
  const again = async () => {
    const turn = ++mine;
    if (!place.childNodes.length) place.append(el("p.soft.wait", { role: "status" }, "Loading"));
    try {
      const answer = await ask();
      if (turn === mine) place.replaceChildren(...[show(answer)].flat().filter((n) => n != null));
    } catch (e) {
      if (turn === mine) place.replaceChildren(el("p.out.err", { role: "status" }, e.message), el("button", { type: "button", onclick: again }, "Try again"));
    }
  };
  again();
  return again;
}

// poll takes a step now and after each pause, and says in out what went wrong.
// It gives what takes one at once, and what ends it, after which an answer that
// was on its way changes nothing.
export function poll(out, pause, step) {
  let gone = false;
  let timer = 0;
  const now = async () => {
    clearTimeout(timer);
    try {
      const show = await step();
      if (gone) return;
      show();
      put(out, "");
    } catch (e) {
      if (!gone) fail(out, e);
    }
    if (!gone) timer = setTimeout(now, pause);
  };
  now();
  return { now, end: () => ((gone = true), clearTimeout(timer)) };
}

// copier is a button that copies text; text may be a function.
export function copier(text, label = "Copy") {
  const button = el("button", { type: "button" }, label);
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(typeof text === "function" ? text() : text);
      put(button, "Copied");
    } catch {
      put(button, "Copying is not allowed here");
    }
    setTimeout(() => put(button, label), 3000);
  });
  return button;
}

// --- Acts -----------------------------------------------------------------------

// who is signed in, for the sentence that says who did it; feed.js keeps it.
export const who = { name: "" };

// act runs one change and says in its own place how it went, when, and by whom.
// What done makes of the server's answer is a sentence. Where back is given, {run, done}, it can be undone there.
export async function act(out, button, run, done, back) {
  if (button.ariaDisabled) return; // not disabled: that would take the focus away
  button.ariaDisabled = "true";
  const held = out.contains(document.activeElement);
  out.className = "out";
  put(out, "…");
  try {
    const answer = await run();
    out.replaceChildren(`${done(answer)} `, when(Date.now()), who.name ? `, by ${who.name}. ` : ". ");
    if (back) {
      const undo = el("button.link", { type: "button", onclick: () => act(out, undo, back.run, back.done, { run, done }) }, "Undo");
      out.append(undo);
      if (held) undo.focus();
    }
    return answer;
  } catch (e) {
    fail(out, e);
  } finally {
    button.ariaDisabled = null;
  }
}

// fail says in its place what went wrong.
export function fail(out, e) {
  out.className = "out err";
  put(out, e.message);
}

// ask puts one question, in place, before something that touches people.
export function ask(box, question, yes, run) {
  const from = document.activeElement;
  const close = () => (box.replaceChildren(), from?.focus());
  const go = el("button.bad", { type: "button", onclick: () => (close(), run()) }, yes);
  const no = el("button", { type: "button", onclick: close }, "Keep as it is");
  box.replaceChildren(el("div.ask", { role: "group", "aria-label": question }, el("p", {}, question), el("div.row", {}, go, no)));
  no.focus();
}
// stale greys figures that nobody renewed since an instant, and says their age.
export function stale(node, age, since) {
  const sec = Math.round((Date.now() - since) / 1000);
  node.classList.toggle("stale", since > 0 && sec > 10);
  put(age, since && sec > 10 ? `These figures are ${span(sec)} old.` : "");
}

// control is one act with its fields, the question it may ask, and its answer.
export function control(...children) {
  const c = { out: el("p.out", { role: "status" }), box: el("div") };
  c.node = el("div.control", {}, ...children, c.box, c.out);
  return c;
}
export function number(name, label, attrs) {
  const input = el("input", { id: name, type: "number", min: 0, step: 1, required: true, inputmode: "numeric", ...attrs });
  return { input, node: el("div", {}, el("label", { for: name }, label), input) };
}
// why is the field for a reason, which the audit trail keeps.
export function why(id) {
  const input = el("input", { id, type: "text", maxlength: 500, autocomplete: "off" });
  return { node: el("div.why", {}, el("label", { for: id }, "Reason ", el("small", {}, "for the audit trail")), input), body: () => (input.value.trim() ? { reason: input.value.trim() } : {}), clear: () => (input.value = "") };
}

export function field(id, label, hint, attrs) {
  const input = el("input", { id, name: id, required: true, "aria-describedby": id + "Hint", ...attrs });
  return { input, node: el("div.field", {}, el("label", { for: id }, label), input, el("p.hint", { id: id + "Hint" }, hint)) };
}

// wrong shows at its field what the server refused; fields are the inputs by the server's name for them. It answers whether there was one.
export function wrong(fields, e) {
  for (const f of Object.values(fields)) {
    f.removeAttribute("aria-invalid");
    f.closest(".field, div")?.querySelector(":scope > .err.at")?.remove();
  }
  const name = e && Object.keys(fields).sort((a, b) => b.length - a.length).find((n) => e.field === n || e.field?.startsWith(n + "."));
  if (!name) return false;
  const input = fields[name];
  input.setAttribute("aria-invalid", "true");
  const says = el("p.out.err.at", { id: input.id + "Err" }, e.message);
  input.closest(".field, div").append(says);
  input.setAttribute("aria-describedby", says.id);
  input.focus();
  return true;
}

// readdress writes what a page shows into its address, so that it can be kept
// and sent on. Whoever has gone to another page meanwhile stays there.
export function readdress(to) {
  if (location.hash.split("?")[0] === to.split("?")[0]) history.replaceState(null, "", to);
}
