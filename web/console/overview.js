// All rooms at a glance, worst first. With hundreds of rooms only the rows that
// a frame changed are drawn.

import { find, lastFrame, rooms, session } from "./feed.js";
import { el, eta, graph, num, preOf, put, rateOf, since, stale, stateOf } from "./parts.js";

const HEADS = ["Room", "State", "Waiting", "In a minute", "Out a minute", "Oldest wait", "Wait if you join now", "Last 15 minutes"];
const MANY = 8; // rooms from which on a filter helps

// alarmsOf are the sentences of what is wrong in a room.
export const alarmsOf = (r) => (r.error ? [r.error] : (r.alerts || []).map((a) => (typeof a === "string" ? a : a.sentence || a.message || a.text || a.rule || a.kind)));

// rank orders rooms: an alarm, then those with a line, long ones first. It is coarse, so that rows do not change places with every frame.
const rank = (r) => (alarmsOf(r).length ? 1000 : 0) + Math.floor(Math.log2((r.waiting || 0) + (preOf(r) || 0) + 1)) * 10 + (stateOf(r) === "bypass" ? 1 : 0);

export function page() {
  const age = el("p.age", {});
  const body = el("tbody");
  const table = el("table.rooms.cards", {}, el("caption.sr", {}, "Rooms, worst first"), el("thead", {}, el("tr", {}, ...HEADS.map((h, i) => el(i > 1 && i < 7 ? "th.num" : "th", { scope: "col" }, h)))), body);
  const filter = el("input", { id: "filter", type: "search", autocomplete: "off", spellcheck: "false", placeholder: "Name, id or state", "aria-label": "Filter the rooms" });
  const found = el("p.soft", { role: "status" });
  const tools = el("div.tools", { hidden: true }, filter, found);
  const rows = new Map();
  let order = [];

  const make = (r) => {
    const cell = (k, cls = "td.num.live") => el(cls, { "data-k": k });
    const c = { state: cell("State", "td.live"), waiting: cell("Waiting"), in: cell("In a minute"), out: cell("Out a minute"), oldest: cell("Oldest wait"), eta: cell("Wait now"), spark: el("td.live.graph") };
    c.name = el("a", { href: "#/rooms/" + encodeURIComponent(r.id) });
    c.alarm = el("span.alarm", { hidden: true });
    c.tr = el("tr", {}, el("th", { scope: "row" }, c.name, el("small", {}, r.id), c.alarm), c.state, c.waiting, c.in, c.out, c.oldest, c.eta, c.spark);
    return c;
  };
  const fill = (c, r) => {
    const alarms = alarmsOf(r);
    put(c.name, r.name || r.id);
    put(c.alarm, alarms.join(" "));
    c.alarm.hidden = !alarms.length;
    c.tr.classList.toggle("alarmed", alarms.length > 0);
    if (c.shown !== stateOf(r)) c.state.replaceChildren(el("span.state", { "data-s": (c.shown = stateOf(r)) }, r.error ? "out of reach" : stateOf(r)));
    put(c.waiting, num(r.waiting) + (preOf(r) ? ` + ${num(preOf(r))}` : ""));
    c.waiting.title = preOf(r) ? `${num(preOf(r))} before the draw` : "";
    put(c.in, num(r.joinedLastMin));
    put(c.out, `${num(r.passedLastMin)} of ${num(rateOf(r))}`);
    since(c.oldest, r.oldestWaitSec);
    put(c.eta, eta(r));
    c.spark.replaceChildren(graph("spark", r.sparkline));
  };
  const matches = (r) => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const text = `${r.name || ""} ${r.id} ${stateOf(r)} ${alarmsOf(r).length ? "alarm" : ""}`.toLowerCase();
    return words.every((w) => text.includes(w));
  };
  const sift = () => {
    let n = 0;
    for (const r of rooms) {
      const c = rows.get(r.id);
      if (c && !(c.tr.hidden = !matches(r))) n++;
    }
    put(found, filter.value ? `${n} of ${rooms.length} rooms` : "");
  };
  filter.addEventListener("input", sift);
  filter.addEventListener("keydown", (event) => event.key === "Escape" && ((filter.value = ""), sift()));

  // Rows change places only while nobody points at one or stands in one, unless there is a new alarm.
  const sort = (urgent) => {
    const want = rooms.map((r, i) => [rank(r), i, r.id]).sort((a, b) => b[0] - a[0] || a[1] - b[1]).map((x) => x[2]);
    if (want.length === order.length && want.every((id, i) => id === order[i])) return;
    if (!urgent && order.length && (body.matches(":hover") || body.contains(document.activeElement))) {
      for (const id of want) if (!rows.get(id).tr.isConnected) body.append(rows.get(id).tr), order.push(id);
      return;
    }
    const focused = body.contains(document.activeElement) && document.activeElement;
    order = want;
    let before = null;
    for (const id of [...want].reverse()) {
      const { tr } = rows.get(id);
      if (tr.nextSibling !== before || !tr.isConnected) body.insertBefore(tr, before);
      before = tr;
    }
    if (focused) focused.focus({ preventScroll: true });
  };

  const node = el(
    "div",
    {},
    el("div.head", {}, el("h1", {}, "Rooms"), session.may("operator") && el("a.button.main", { href: "#/new" }, "New room")),
    el("div.panel", {}, tools, table),
    age,
  );
  const empty = el("p.soft", { hidden: true }, "There are no rooms yet.");
  node.append(empty);
  let drawn = false;
  return {
    node,
    draw(changed) {
      if (lastFrame && !rooms.length && session.may("operator")) return location.replace("#/new");
      if (!drawn) changed = null;
      drawn = true;
      for (const [id, c] of rows) if (!find(id)) c.tr.remove(), rows.delete(id), (order = order.filter((x) => x !== id));
      let urgent = false;
      for (const r of rooms) {
        if (changed && !changed.has(r.id) && rows.has(r.id)) continue;
        const c = rows.get(r.id) || make(r);
        rows.set(r.id, c);
        const was = c.tr.classList.contains("alarmed");
        fill(c, r);
        urgent ||= !was && c.tr.classList.contains("alarmed");
      }
      if (!changed || changed.size) sort(urgent), sift();
      tools.hidden = rooms.length < MANY && !filter.value;
      table.hidden = !(empty.hidden = rooms.length > 0);
      stale(node, age, lastFrame);
    },
  };
}
