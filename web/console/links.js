// Share links: whoever opens one looks on, and changes nothing.

import { moment, once, oneAct } from "./desk.js";
import { api, session } from "./feed.js";
import { act, ask, control, copier, el, field, head, load, num, table, wrong } from "./parts.js";

const DAY = 86_400;

export function page() {
  const place = el("div");
  const shown = el("div");
  const revoked = control();
  let again;
  const list = (a) => {
    const t = table("Share links", [
      { name: "Link", cell: (l) => el("code", {}, l.id) },
      { name: "Made by", cell: (l) => l.createdByName || l.createdBy },
      { name: "Made", cell: (l) => moment(l.createdAt) },
      { name: "Good until", cell: (l) => moment(l.expiresAt) },
      ...(session.may("operator") ? [{ name: "Act", cell: (l) => el("button.bad", { type: "button", "aria-label": "Revoke link " + l.id, onclick: (e) => ask(revoked.box, `The link ${l.id} by ${l.createdByName || l.createdBy} stops working, and whoever looks on by it is signed out.`, "Revoke it", () => gone(e.target, "id=" + encodeURIComponent(l.id))) }, "Revoke") }] : []),
    ], "There are no share links.");
    t.fill(a.links);
    const all = a.links.length > 1 && session.may("operator") && el("p.row", {}, el("button.bad", { type: "button", onclick: (e) => ask(revoked.box, `All ${num(a.links.length)} links stop working, and whoever looks on by one is signed out.`, "Revoke all", () => gone(e.target, "all=1")) }, "Revoke all"));
    return [t.node, all || null];
  };
  const gone = (button, which) => act(revoked.out, button, () => api("DELETE", "/monitor-token?" + which), (a) => (again(), a.revoked === 1 ? "1 link is revoked." : `${num(a.revoked)} links are revoked.`));
  again = load(place, () => api("GET", "/monitor-token"), list);

  const days = field("days", "Good for, in days", "From 1 to 366.", { type: "number", min: 1, max: 366, step: 1, value: 30, inputmode: "numeric" });
  const make = oneAct("Make a link", () => {
    wrong({ expiresInSec: days.input });
    return api("POST", "/monitor-token", { expiresInSec: Math.round(Number(days.input.value) * DAY) }).catch((e) => {
      if (wrong({ expiresInSec: days.input }, e)) e = new Error("The link was not made.");
      throw e;
    });
  }, (a) => {
    again();
    once(shown, "This address is shown only now. Whoever has it can look on until it ends or is revoked.", el("div.line", {}, el("code", {}, a.url), copier(a.url)), el("p.hint", {}, "Good until ", moment(a.expiresAt), "."));
    return `Link ${a.id} is made.`;
  }, "button.main");
  return { node: el("div", {}, head("Share links"), el("div.stack", {}, session.may("operator") && el("section.panel", { "aria-labelledby": "mk" }, el("h2", { id: "mk" }, "Make a link"), el("p.hint", {}, "It opens this console for looking on: all figures, and nothing that names a site behind the line. The token is in the part of the address that browsers send to no server."), days.node, make.node), shown, el("section.panel", { "aria-labelledby": "ls" }, el("h2", { id: "ls" }, "Links in use"), place, revoked.node))) };
}
