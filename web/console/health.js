// How the server is: what it can do now, what is wrong with its configuration
// and what to do about it, and the configuration in force.

import { moment, renewing } from "./desk.js";
import { api, session } from "./feed.js";
import { el, head, load, num, span, table } from "./parts.js";

const state = (good, words) => el("span.state", good ? {} : { "data-s": "bypass" }, words);

export function page() {
  const place = el("div.stack");
  const stop = renewing(load(place, () => api("GET", "/health"), show), place);
  return { node: el("div", {}, head("Health"), place), leave: stop };
}

function show(h) {
  const fact = (k, v) => el("div", {}, el("dt", {}, k), el("dd", {}, v ?? "–"));
  const reach = (error, fine) => (error ? state(false, error) : state(true, fine));
  const rooms = table("Rooms", [
    { name: "Room", cell: (r) => el("a", { href: "#/rooms/" + encodeURIComponent(r.id) }, r.id) },
    { name: "Run by", cell: (r) => (r.owned ? "this process" : "another process, or nobody now") },
    { name: "Events not yet drawn", num: true, cell: (r) => num(r.lag) },
    { name: "Journal", cell: (r) => (r.damaged ? state(false, r.damaged) : state(true, "whole")) },
  ], "There are no rooms.");
  rooms.fill(h.rooms || []);
  const variables = table("Configuration", [
    { name: "Variable", cell: (v) => el("code", {}, v.name) },
    { name: "Value", cell: (v) => ("set" in v ? (v.set ? "set, and not shown" : "not set") : v.value === "" ? "empty" : el("code", {}, v.value)) },
    { name: "From", cell: (v) => (v.default ? "the default" : "the environment") },
  ], "The configuration is not shown with a share link.");
  variables.fill(h.config?.variables || []);
  const limits = Object.entries(h.config || {}).filter(([, v]) => typeof v === "number" || typeof v === "boolean");
  return [
    el("section.panel", { "aria-labelledby": "now" }, el("h2", { id: "now" }, "Now"), el("dl.plain", {},
      fact("This server", state(h.ok, h.ok ? "takes places" : h.stopping ? "is stopping" : "cannot take places")),
      fact("Version", h.version),
      fact("Up for", span(h.uptimeSec)),
      fact("Stores", h.stores),
      fact("Journal", reach(h.journalError, "can be written")),
      fact("Projection", reach(h.projectionError, "can be written")),
      fact("Operators and settings", reach(h.organisationError, "can be read")),
      fact("Streams open", `${num(h.streams)} of ${num(h.config?.sseMaxTotal)}`),
      fact("Connections open", num(h.connections) + (h.config?.maxConnections ? ` of ${num(h.config.maxConnections)}` : "")),
      fact("Checks of unknown rooms, let through", num(h.checksOfUnknownRooms)),
      fact("Told", moment(h.now)),
    ), h.checksOfUnknownRooms > 0 && el("p.hint", {}, "A connector asks for a room that does not exist, and the door lets its visitors pass. Compare the room id in the connector's configuration with the list of rooms.")),
    el("section.panel", { "aria-labelledby": "warn" }, el("h2", { id: "warn" }, "Warnings"), h.warnings?.length ? el("ul.warnings", {}, ...h.warnings.map((w) => el("li", {}, w))) : el("p.soft", {}, session.may("viewer") ? "There is nothing to warn of." : "Warnings are not shown with a share link.")),
    el("section.panel", { "aria-labelledby": "kept" }, el("h2", { id: "kept" }, "Rooms"), rooms.node),
    el("section.panel", { "aria-labelledby": "conf" }, el("h2", { id: "conf" }, "Configuration in force"), el("details.more", {}, el("summary", {}, "Limits"), el("dl.plain", {}, ...limits.map(([k, v]) => fact(k, typeof v === "number" ? num(v) : v ? "yes" : "no")))), variables.node),
  ];
}
