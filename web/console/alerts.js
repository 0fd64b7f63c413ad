// What is wrong now, what was, what is kept quiet, and what is watched.

import { moment, oneAct, renewing } from "./desk.js";
import { api, rooms, session } from "./feed.js";
import { act, control, el, head, load, num, table, why, wrong } from "./parts.js";

const SPANS = [[3600, "1 hour"], [4 * 3600, "4 hours"], [86_400, "1 day"], [7 * 86_400, "7 days"]];
const where = (a) => (a.roomId ? el("a", { href: "#/rooms/" + encodeURIComponent(a.roomId) }, a.roomId) : "the server");

export function page() {
  const place = el("div.stack");
  const ended = control();
  let rules = [];
  const rule = el("select", { id: "rule", name: "rule" });
  const again = load(place, () => api("GET", "/alerts"), show);
  const stop = renewing(again, place);
  const titleOf = (id) => rules.find((r) => r.id === id)?.title || id;

  function show(a) {
    rules = a.rules;
    const was = rule.value;
    rule.replaceChildren(...rules.map((r) => el("option", { value: r.id, selected: r.id === was }, r.title)));
    const fill = (caption, columns, empty, rows) => {
      const t = table(caption, columns, empty);
      t.fill(rows);
      return t.node;
    };
    const what = { name: "What", cell: (x) => x.sentence || titleOf(x.rule) };
    return [
      el("section.panel", { "aria-labelledby": "act" }, el("h2", { id: "act" }, "Wrong now"), fill("Wrong now", [what, { name: "Where", cell: where }, { name: "Since", cell: (x) => moment(x.since) }, { name: "Told", cell: (x) => (x.silencedUntil ? el("span", {}, "silenced until ", moment(x.silencedUntil)) : x.told ? "yes" : a.enabled || a.mail ? "not yet" : "nobody to tell") }], rules.length ? "Nothing is wrong." : "Nothing is watched on this server.", a.active)),
      el("section.panel", { "aria-labelledby": "sil" }, el("h2", { id: "sil" }, "Silences"), fill("Silences", [
        { name: "Alert", cell: (x) => titleOf(x.rule) },
        { name: "Where", cell: (x) => (x.roomId ? where(x) : "everywhere") },
        { name: "Until", cell: (x) => moment(x.until) },
        { name: "By", cell: (x) => x.byName || x.by },
        { name: "Reason", cell: (x) => x.reason || null },
        ...(session.may("operator") ? [{ name: "Act", cell: (x) => el("button", { type: "button", "aria-label": `End it: the silence of ${titleOf(x.rule)}`, onclick: (e) => act(ended.out, e.target, () => api("DELETE", "/alerts/silence?id=" + encodeURIComponent(x.id)), () => (again(), `${titleOf(x.rule)} is told again.`)) }, "End it") }] : []),
      ], "No alert is silenced.", a.silences)),
      el("section.panel", { "aria-labelledby": "past" }, el("h2", { id: "past" }, "What was"), fill("What was", [what, { name: "Where", cell: where }, { name: "From", cell: (x) => moment(x.since) }, { name: "Until", cell: (x) => moment(x.endedAt) }], "No alert has ended yet.", a.history)),
      el("section.panel", { "aria-labelledby": "rules" }, el("h2", { id: "rules" }, "What is watched"), el("p.hint", {}, a.enabled ? `Alerts go to ${a.webhook}` : "Alerts go to no webhook: ALERT_WEBHOOK_URL is not set", a.mail ? ` and to ${num(a.mails)} mail ${a.mails === 1 ? "address" : "addresses"}.` : ". They go to nobody's mail: ALERT_MAIL_TO is not set."), fill("What is watched", [{ name: "Alert", cell: (r) => r.title }, { name: "Limit", num: true, cell: (r) => (r.limit == null ? "none" : `${num(r.limit)} ${r.unit}`) }], "Nothing is watched on this server.", rules)),
    ];
  }

  let acts = null;
  if (session.may("operator")) {
    const room = el("select", { id: "room", name: "roomId" }, el("option", { value: "" }, "everywhere"), ...rooms.map((r) => el("option", { value: r.id }, r.name || r.id)));
    const span = el("select", { id: "span", name: "forSec" }, ...SPANS.map(([v, w]) => el("option", { value: v }, w)));
    const reason = why("silenceWhy");
    const button = el("button.main", { type: "submit" }, "Silence it");
    const c = control();
    const fields = { rule, roomId: room, forSec: span };
    const label = (words, f) => el("div", {}, el("label", { for: f.id }, words), f);
    const form = el("form", { novalidate: true, onsubmit: (event) => {
      event.preventDefault();
      wrong(fields);
      act(c.out, button, () => api("POST", "/alerts/silence", { rule: rule.value, ...(room.value && { roomId: room.value }), forSec: Number(span.value), ...reason.body() }).catch((e) => {
        if (wrong(fields, e)) e = new Error("Nothing was silenced.");
        throw e;
      }), (a) => (again(), reason.clear(), `${titleOf(a.rule)} tells nobody for ${SPANS.find(([v]) => v === Number(span.value))[1]}.`));
    } }, el("div.filters", {}, label("Alert", rule), label("Where", room), label("For", span), reason.node, button), c.box, c.out);
    const test = oneAct("Send a test page", () => api("POST", "/alerts"), (a) => `A test went to ${[a.webhook, a.mailed && "mail"].filter(Boolean).join(" and ") || "nobody"}.`);
    acts = el("section.panel", { "aria-labelledby": "quiet" }, el("h2", { id: "quiet" }, "Keep one quiet"), el("p.hint", {}, "A silenced alert still shows here; it tells nobody until the silence ends."), form, test.node);
  }
  return { node: el("div", {}, head("Alerts"), place, ended.box, ended.out, acts), leave: stop };
}
