// Who did what, when and from where, and what it was before and after.

import { download, moment, saidOf } from "./desk.js";
import { api, rooms } from "./feed.js";
import { el, head, num, put, readdress, table } from "./parts.js";

// An act's kind in words; what is not here is shown as it is.
const KINDS = {
  create: "made a room", configure: "changed settings", state: "changed the state", schedule: "changed the opening", draw: "drew the line", pass: "let people in", eject: "sent somebody to the back", purge: "emptied the line", close: "closed a room", delete: "deleted a room",
  operator: "gave a key", revoke: "revoked a key", reseal: "renewed a key's seal", signin: "signed in", signout: "signed out", link: "made a share link", unlink: "revoked share links", factor: "set up a second factor", "factor-on": "turned a second factor on", "factor-off": "took a second factor off", setting: "changed a setting", forget: "erased old details", shutdown: "stopped the server", silence: "silenced an alert", "silence-end": "ended a silence",
};

const MANY = 8; // members from which on they are folded away

// flat is what an act tells with the settings of a room on one level.
const flat = (o) => ({ ...o, settings: undefined, ...o?.settings, ...(o?.branding && { branding: undefined, ...Object.fromEntries(Object.entries(o.branding).map(([k, v]) => ["branding." + k, v])) }) });

// changes says in words what was and what is.
function changes(e) {
  const before = flat(e.before);
  const after = flat(e.after);
  let names = [...new Set([...Object.keys(before), ...Object.keys(after)])].filter((k) => (before[k] ?? "") !== "" || (after[k] ?? "") !== "");
  // Where something changed, what stayed only says of whom it is.
  const moved = names.filter((k) => saidOf(before[k]) !== saidOf(after[k]));
  if (e.before && e.after && moved.length) names = names.filter((k) => k === "name" || moved.includes(k));
  if (!names.length) return "–";
  const side = (o, k) => (/(^|[a-z])(ends|until|before|at)$/i.test(k) && Number(o[k]) > 1e11 ? moment(Number(o[k])) : saidOf(o[k]));
  const line = (k) => {
    if (!(k in before) || (k in after && saidOf(before[k]) === saidOf(after[k]))) return [side(after, k)];
    return [side(before, k), " → ", k in after ? side(after, k) : "nothing"];
  };
  const list = el("ul.plainlist", {}, ...names.map((k) => el("li", {}, el("span.soft", {}, k + ": "), ...line(k))));
  return names.length > MANY ? el("details", {}, el("summary", {}, `${names.length} settings`), list) : list;
}

export function page({ query }) {
  const given = (name) => query.get(name) || "";
  const choice = (id, words, list) => el("select", { id, name: id }, el("option", { value: "" }, words), ...list.map(([v, w]) => el("option", { value: v, selected: given(id) === v }, w)));
  const room = choice("room", "any", [["$org", "the organisation"], ...rooms.map((r) => [r.id, r.name || r.id])]);
  const kind = choice("kind", "any", Object.entries(KINDS));
  const operator = el("input", { id: "operator", name: "operator", autocomplete: "off", spellcheck: "false", value: given("operator"), placeholder: "admin, or an operator's id" });
  const day = (id) => el("input", { id, name: id, type: "datetime-local", value: given(id) });
  const since = day("since");
  const until = day("until");
  const fields = { room, operator, kind, since, until };
  const out = el("p.out", { role: "status" });
  const takes = el("div.row");
  const more = el("button", { type: "button", hidden: true, onclick: () => read(true) }, "Earlier acts");
  let rows = [];
  let next = "";
  let turn = 0;

  const asked = (address) => {
    const q = new URLSearchParams();
    for (const [k, f] of Object.entries(fields)) if (f.value) q.set(k, f.type === "datetime-local" && !address ? new Date(f.value).getTime() : f.value);
    return q;
  };
  const list = table("Audit trail, newest first", [
    { name: "When", cell: (e) => moment(e.at) },
    { name: "Who", cell: (e) => el("span", {}, e.name || "name erased", el("small", {}, e.actor)) },
    { name: "What", cell: (e) => el("span", {}, KINDS[e.kind] || e.kind, e.reason && el("small", {}, `Reason: ${e.reason}`)) },
    { name: "Room", cell: (e) => (e.room ? el("a", { href: "#/rooms/" + encodeURIComponent(e.room) }, e.room) : "the organisation") },
    { name: "From", cell: (e) => e.from || (e.erased ? "erased" : "not kept") },
    { name: "Before → after", cell: changes },
  ], "No act fits this filter.");
  async function read(on) {
    const mine = ++turn;
    for (const f of Object.values(fields)) f.removeAttribute("aria-invalid");
    out.className = "out";
    put(out, "Loading");
    const q = asked();
    takes.replaceChildren(download("Download as CSV", `/audit?${new URLSearchParams([...q, ["format", "csv"]])}`, "audit.csv"), download("Download as NDJSON", `/audit?${new URLSearchParams([...q, ["format", "ndjson"]])}`, "audit.ndjson"));
    if (on) q.set("cursor", next);
    try {
      const a = await api("GET", "/audit?" + q);
      if (mine !== turn) return;
      rows = on ? [...rows, ...a.entries] : a.entries;
      next = a.next || "";
      list.fill(rows);
      more.hidden = !next;
      put(out, rows.length === 1 ? "1 act" : `${num(rows.length)} acts${next ? ", and there are earlier ones" : ""}`);
      if (!on) readdress("#/audit" + (String(asked(true)) && "?" + asked(true)));
    } catch (e) {
      if (mine !== turn) return;
      out.className = "out err";
      put(out, e.message);
      fields[e.field]?.setAttribute("aria-invalid", "true");
      fields[e.field]?.focus();
    }
  }
  const label = (words, f) => el("div", {}, el("label", { for: f.id }, words), f);
  const form = el("form.filters", { onsubmit: (event) => (event.preventDefault(), read(false)) }, label("Room", room), label("Act", kind), label("Who", operator), label("From", since), label("Until", until), el("button.main", { type: "submit" }, "Show"));
  read(false);
  return { node: el("div", {}, head("Audit"), el("section.panel", { "aria-label": "Audit trail" }, form, takes, out, list.node, el("p.pager", {}, more))) };
}
