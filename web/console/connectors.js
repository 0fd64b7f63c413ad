// What stands between a site and its line: the connectors that this server
// hands out, how each is installed, and which of them each room has heard from.

import { moment } from "./desk.js";
import { api, publicly, rooms } from "./feed.js";
import { copier, el, head, load, num, readdress, table } from "./parts.js";

const ACTS = [["install", "Install"], ["upgrade", "Upgrade"], ["verify", "Verify"]];

export function page({ query }) {
  const registry = el("div");
  const seen = el("div");
  const pick = el("select", { id: "room" }, el("option", { value: "" }, "any room"), ...rooms.map((r) => el("option", { value: r.id, selected: query.get("room") === r.id }, r.name || r.id)));
  const hand = load(registry, () => publicly("/connectors" + (pick.value ? "?roomId=" + encodeURIComponent(pick.value) : "")), (a) => a.connectors?.length ? a.connectors.map(shown) : el("p.soft", {}, "This server hands out no connectors."));
  pick.addEventListener("change", () => {
    readdress(pick.value ? "#/connectors?room=" + encodeURIComponent(pick.value) : "#/connectors");
    hand();
  });
  load(seen, checkins, (list) => {
    const t = table("Connectors by room", [
      { name: "Room", cell: (c) => el("a", { href: `#/rooms/${encodeURIComponent(c.roomId)}/install` }, c.roomId) },
      { name: "Connector", cell: (c) => c.connector || "not named" },
      { name: "Version", cell: (c) => (c.version ? c.version + (c.newest && c.newest !== c.version ? `, the newest is ${c.newest}` : "") : null) },
      { name: "Site", cell: (c) => c.origin },
      { name: "Install check", cell: (c) => el("span.state", c.ok ? {} : { "data-s": "bypass" }, c.ok ? "fine" : "fails: " + c.failing.join(", ")) },
      { name: "Seen last", cell: (c) => moment(c.lastSeenAt) },
      { name: "Times", num: true, cell: (c) => num(c.count) },
    ], "No connector has asked for a report since this server started.");
    t.fill(list);
    return t.node;
  });
  return { node: el("div", {}, head("Connectors"),
    el("section.panel", { "aria-labelledby": "seen" }, el("h2", { id: "seen" }, "Who checked in"), el("p.hint", {}, "As this process saw it since it started."), seen),
    el("section.panel", { "aria-labelledby": "reg" }, el("h2", { id: "reg" }, "Registry"), el("div.tools", {}, el("label", { for: "room" }, "Commands for"), pick), registry)) };
}

// checkins asks room by room, a few at a time: there may be hundreds.
async function checkins() {
  const left = rooms.map((r) => r.id);
  const list = [];
  const take = async () => {
    for (let id; (id = left.shift()); ) {
      const a = await api("GET", `/rooms/${encodeURIComponent(id)}/connectors`).catch((e) => {
        if (e.status !== 404) throw e; // a room that went meanwhile
        return { connectors: [] };
      });
      list.push(...a.connectors.map((c) => ({ ...c, roomId: id })));
    }
  };
  await Promise.all([take(), take(), take(), take()]);
  return list.sort((a, b) => new Date(b.lastSeenAt) - new Date(a.lastSeenAt));
}

function shown(c) {
  return el("details.more.connector", {},
    el("summary", {}, c.title || c.name, " ", el("span.soft", {}, `${c.version}, ${num(Math.ceil(c.size / 1024))} KB`)),
    el("dl.plain", {}, el("div", {}, el("dt", {}, "File"), el("dd", {}, el("a", { href: c.download }, c.download))), el("div", {}, el("dt", {}, "SHA-256"), el("dd", {}, el("code", {}, c.sha256)))),
    ...ACTS.filter(([k]) => c[k]).map(([k, words]) => el("div.cmd", {}, el("p.legend", {}, words), el("div.line", {}, el("code", {}, c[k]), copier(c[k])))));
}
