// The last events of a room's journal in short, newest first.

import { api } from "./feed.js";
import { clockOf, el, fail, full24, num, put } from "./parts.js";

const KEEP = 40;

const spans = (list) => "ticket" + (list?.length === 1 && list[0][0] === list[0][1] ? " " : "s ") + (list || []).map(([a, b]) => (a === b ? num(a) : `${num(a)} to ${num(b)}`)).join(", ");
const tickets = (list) => (list?.length > 6 ? `${num(list.length)} tickets` : list?.length ? `ticket${list.length > 1 ? "s" : ""} ${list.map(num).join(", ")}` : "");

// short is what an event says, as far as it can be said without those before it.
export function short({ kind, body }) {
  const b = body || {};
  const why = b.reason?.rule ? `${b.reason.rule}: ${b.reason.sign}` : "";
  switch (kind) {
    case "join":
      return `ticket ${num(b.n)}`;
    case "enqueue":
      return `entry ${num(b.q)} before the draw`;
    case "pass":
      return spans(b.p) + (b.by === "flush" ? ", let in at once" : "");
    case "enter":
      return `ticket ${num(b.n)} is inside`;
    case "lapse":
    case "leave":
    case "renew":
    case "unslot":
      return [tickets(b.ns), b.why].filter(Boolean).join(", ");
    case "eject":
      return `ticket ${num(b.n)}${b.to ? ` is now ${num(b.to)}` : ""}`;
    case "state":
      return [b.state, why].filter(Boolean).join(", ");
    case "purge":
      return `${num((b.waiting || 0) + (b.preQueue || 0))} taken out`;
    case "draw":
      return `${num(b.count)} places, from ticket ${num(b.first)}`;
    case "schedule":
      return b.opensAt ? full24(b.opensAt) : "no opening";
    case "configure":
      return [b.settings?.ratePerMinute !== undefined && `${num(b.settings.ratePerMinute)} a minute`, why].filter(Boolean).join(", ");
  }
  return "";
}

// lately makes the list for a room: {node, draw(r), leave()}.
export function lately(room) {
  const list = el("ol.journal");
  const out = el("p.out");
  const about = el("p.hint", {}, "Newest first. Point at one for its number, instant and actor.");
  const node = el("section.panel", { "aria-label": "What happened" }, el("div.charthead", {}, el("h2", {}, "What happened"), el("a", { href: room.base + "/journal" }, "The whole journal")), about, list, out);
  let after = null;
  let known = -1;
  let busy = false;
  let gone = false;
  const line = (e) => {
    const facts = `${e.seq ?? "–"}, ${e.at ? full24(e.at) : "–"}, by ${e.actor || "–"}`;
    const people = e.actor && !["visitor", "clock"].includes(e.actor) ? ` by ${e.actor}` : "";
    return el("li", { tabindex: -1, title: facts, "data-about": facts }, el("span.soft", {}, e.at ? clockOf(e.at) : "–"), el("b", {}, e.kind || "–"), el("span.soft", {}, short(e) + people));
  };
  // The list is one stop on the way of the Tab key; the arrows go through it.
  const stand = (li) => {
    for (const other of list.querySelectorAll('[tabindex="0"]')) other.tabIndex = -1;
    if (li) li.tabIndex = 0;
  };
  const tell = (event) => {
    const li = event.target.closest?.("li");
    if (li) put(about, `No. ${li.dataset.about}.`);
    if (li && event.type === "focusin") stand(li);
  };
  list.addEventListener("focusin", tell);
  list.addEventListener("pointerover", tell);
  list.addEventListener("keydown", (event) => {
    const li = event.target.closest("li");
    const next = { ArrowDown: li?.nextSibling, ArrowUp: li?.previousSibling, Home: list.firstChild, End: list.lastChild }[event.key];
    if (next) event.preventDefault(), next.focus();
  });
  async function more(seq) {
    busy = true;
    try {
      // Begin near the head; what is older is in the journal's own page.
      if (after === null || seq - after > 500) after = Math.max(0, seq - KEEP);
      const { events } = await api("GET", `${room.path}/journal?after=${after}&limit=500`);
      if (gone) return;
      if (events.length) after = events.at(-1).seq;
      list.prepend(...events.slice(-KEEP).reverse().map(line));
      while (list.children.length > KEEP) list.lastChild.remove();
      if (!list.querySelector('[tabindex="0"]')) stand(list.firstChild);
      put(out, list.children.length ? "" : "Nothing has happened yet.");
      out.className = "out";
      known = seq;
    } catch (e) {
      fail(out, e);
    }
    busy = false;
  }
  return {
    node,
    leave: () => (gone = true),
    draw(r) {
      if (!busy && !gone && (r.seq ?? 0) !== known) more(r.seq ?? 0);
    },
  };
}
