// Who has a key: a key of one's own is how the audit trail knows who did what.

import { moment, once } from "./desk.js";
import { api } from "./feed.js";
import { act, ask, control, copier, el, field, head, load, table, wrong } from "./parts.js";

const ROLES = { viewer: "sees everything, changes nothing", operator: "runs rooms", owner: "runs rooms, and gives out keys" };

export function page() {
  const place = el("div");
  const shown = el("div");
  const c = control();
  let again;
  // Nobody's last sign-in is kept but in the audit trail; whoever is not among its latest has none that is known.
  const read = async () => {
    const [a, log] = await Promise.all([api("GET", "/operators"), api("GET", "/audit?kind=signin&limit=1000").catch(() => ({ entries: [] }))]);
    return a.operators.map((o) => ({ ...o, seen: log.entries.find((e) => e.actor === o.id)?.at }));
  };
  const one = (o) => {
    const revoke = el("button.bad", { type: "button", "aria-label": `Revoke ${o.name}`, onclick: () => ask(c.box, `${o.name} (${o.role}) is signed out everywhere within seconds; the key and the share links made with it stop working. It cannot be undone.`, `Revoke ${o.name}`, () => act(c.out, revoke, () => api("DELETE", "/operators/" + encodeURIComponent(o.id)), () => (again(), `The key of ${o.name} is revoked.`))) }, "Revoke");
    const reset = o.otp && el("button", { type: "button", "aria-label": `Take second factor off: ${o.name}`, onclick: () => ask(c.box, `${o.name} can then sign in with the key alone. Do this for somebody who has lost their device.`, "Take it off", () => act(c.out, reset, () => api("DELETE", `/operators/${encodeURIComponent(o.id)}/otp`), () => (again(), `The second factor of ${o.name} is off.`))) }, "Take second factor off");
    return el("div.row", {}, revoke, reset);
  };
  again = load(place, read, (list) => {
    const t = table("Operators", [
      { name: "Name", cell: (o) => el("span", {}, o.name || "–", el("small", {}, o.id)) },
      { name: "Role", cell: (o) => el("span", { title: ROLES[o.role] }, o.role) },
      { name: "Last sign-in", cell: (o) => moment(o.seen) },
      { name: "Second factor", cell: (o) => (o.otp ? "on" : "off") },
      { name: "Since", cell: (o) => moment(o.createdAt) },
      { name: "Acts", cell: one },
    ], "Nobody has a key of their own yet: whoever signs in uses the admin key, and the audit trail cannot tell them apart.");
    t.fill(list);
    return t.node;
  });

  const name = field("opname", "Name", "Up to 200 characters; the audit trail shows it.", { maxlength: 200, autocomplete: "off" });
  const role = el("select", { id: "oprole", name: "role" }, ...Object.entries(ROLES).map(([k, words]) => el("option", { value: k }, `${k}: ${words}`)));
  const button = el("button.main", { type: "submit" }, "Give a key");
  const made = control(el("div.row", {}, button));
  const fields = { name: name.input, role };
  const form = el("form", { novalidate: true, onsubmit: (event) => {
    event.preventDefault();
    wrong(fields);
    act(made.out, button, () => api("POST", "/operators", { name: name.input.value.trim(), role: role.value }).catch((e) => {
      if (wrong(fields, e)) e = new Error("No key was given.");
      throw e;
    }), (a) => {
      again();
      name.input.value = "";
      once(shown, `The key of ${a.name}. It is shown only now: this server keeps no copy.`, el("div.line", {}, el("code", {}, a.key), copier(a.key)));
      return `${a.name} is ${a.role === "viewer" ? "a" : "an"} ${a.role}.`;
    });
  } }, name.node, el("div.field", {}, el("label", { for: "oprole" }, "Role"), role), made.node);
  return { node: el("div", {}, head("Operators"), el("div.stack", {}, el("section.panel", { "aria-labelledby": "ops" }, el("h2", { id: "ops" }, "Keys in use"), place, c.node), shown, el("section.panel", { "aria-labelledby": "give" }, el("h2", { id: "give" }, "Give somebody a key"), form))) };
}
