// Who knocks at the doors: scores, what they came to, and what enforce would
// have refused; and what this server refuses at all.

import { moment, renewing } from "./desk.js";
import { api, rooms } from "./feed.js";
import { el, head, load, num, readdress, table } from "./parts.js";

const VERDICTS = { let_in: "let in", held: "held back", refused: "refused", offered: "refused, with a proof of work offered", worked: "let in for a proof of work", would_refuse: "let in, and enforce would have refused" };
const MODES = { off: "off: nobody is scored", monitor: "monitor: scores are counted, nobody is refused", enforce: "enforce" };

const share = (n, of) => (of ? `${num(n)} (${Math.round((n / of) * 100)} %)` : num(n));

export function page({ query }) {
  const place = el("div.stack");
  const room = el("select", { id: "room" }, el("option", { value: "" }, "all rooms"), ...rooms.map((r) => el("option", { value: r.id, selected: query.get("room") === r.id }, r.name || r.id)));
  const again = load(place, () => api("GET", "/security" + (room.value ? "?roomId=" + encodeURIComponent(room.value) : "")), (a) => show(a, room.value));
  room.addEventListener("change", () => {
    readdress(room.value ? "#/security?room=" + encodeURIComponent(room.value) : "#/security");
    again();
  });
  return { node: el("div", {}, head("Security"), el("div.tools", {}, el("label", { for: "room" }, "Room"), room), place), leave: renewing(again, place) };
}

function filled(caption, columns, empty, rows) {
  const t = table(caption, columns, empty);
  t.fill(rows);
  return t.node;
}

function show(a, asked) {
  const doors = a.rooms.filter((d) => asked || d.scored || d.mode !== "off").sort((x, y) => y.scored - x.scored);
  const refusals = Object.entries(a.refusals).sort((x, y) => y[1] - x[1]);
  return [
    el("p.soft", {}, "Figures are those of this process since ", moment(a.since), "."),
    doors.length ? null : el("section.panel", { "aria-label": "Doors" }, el("p.soft", {}, "No room scores its visitors. Set a room's protection to monitor to see what enforce would refuse, without refusing anybody.")),
    ...doors.map(door),
    el("section.panel", { "aria-labelledby": "codes" }, el("h2", { id: "codes" }, "Refusals by code"), el("p.hint", {}, "Whatever was asked for, by visitors, sites and operators."), filled("Refusals by code", [{ name: "Code", cell: ([code]) => el("code", {}, code) }, { name: "Times", num: true, cell: ([, n]) => num(n) }], "Nothing has been refused.", refusals)),
  ];
}

function door(d) {
  const name = rooms.find((r) => r.id === d.roomId)?.name || d.roomId;
  const id = "door-" + d.roomId;
  const top = [el("h2", { id }, el("a", { href: `#/rooms/${encodeURIComponent(d.roomId)}/settings` }, name)), el("p.hint", {}, `Protection is ${MODES[d.mode] || d.mode}${d.mode === "off" ? "" : `; ${d.mode === "enforce" ? "refused" : "enforce refuses"} from ${num(d.threshold)}, held from ${num(d.holdScore)}${d.work ? "; a proof of work opens the door" : ""}`}.`)];
  const panel = (...more) => el("section.panel", { "aria-labelledby": id }, ...top, ...more);
  if (!d.scored) return panel(el("p.soft", {}, "No visitor has been scored here since this server started."));
  const most = Math.max(1, ...d.scores);
  const bars = d.scores.map((n, i) => {
    const bar = el(i * 10 >= d.threshold ? "span.bar.b-refused" : i * 10 >= d.holdScore ? "span.bar.b-held" : "span.bar");
    bar.style.inlineSize = n ? `${(n / most) * 100}%` : "0";
    return el("tr", {}, el("th", { scope: "row" }, i === 9 ? "90 to 100" : `${i * 10} to ${i * 10 + 9}`), el("td.num", {}, share(n, d.scored)), el("td", {}, n ? bar : ""));
  });
  const flagged = d.flagged.kept ? `Of the latest that were held, or that enforce would have refused, ${num(d.flagged.passed)} of ${num(d.flagged.kept)} have waited their turn since and are through: each of these may be a false alarm.` : "Nobody was held, and enforce would have refused nobody.";
  return panel(
    el("table.histogram", {}, el("caption.sr", {}, "Scores, from 0 for a visitor to 100 for a program"), el("thead.sr", {}, el("tr", {}, el("th", { scope: "col" }, "Score"), el("th", { scope: "col" }, "Visitors"), el("th", { scope: "col" }, "Share, drawn"))), el("tbody", {}, ...bars)),
    el("h3", {}, "What they came to"),
    el("dl.plain", {}, ...Object.entries(d.verdicts).map(([k, n]) => el("div", {}, el("dt", {}, VERDICTS[k] || k), el("dd", {}, share(n, d.scored))))),
    el("p.hint", {}, flagged),
    el("h3", {}, "Why"),
    filled("Reasons", [{ name: "Reason", cell: (r) => r.sentence }, { name: "Points", num: true, cell: (r) => num(r.points) }, { name: "Visitors", num: true, cell: (r) => share(r.count, d.scored) }], "No reason has been found.", d.reasons.filter((r) => r.count).sort((x, y) => y.count - x.count)),
    d.recent.length ? el("details.more", {}, el("summary", {}, "The latest with a reason"), filled("The latest with a reason", [
      { name: "When", cell: (j) => moment(j.at) },
      { name: "Score", num: true, cell: (j) => num(j.score) },
      { name: "Came to", cell: (j) => VERDICTS[j.verdict] || j.verdict },
      { name: "Ticket", num: true, cell: (j) => (j.ticket ? el("a", { href: `#/rooms/${encodeURIComponent(d.roomId)}/visitors?ticket=${j.ticket}` }, num(j.ticket)) : null) },
      { name: "Is through", cell: (j) => (j.passed ? "yes" : "no") },
      { name: "Why", cell: (j) => j.reasons.map((r) => d.reasons.find((x) => x.id === r)?.sentence || r).join(" ") },
    ], "", d.recent)) : null,
  );
}
