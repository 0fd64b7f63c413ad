// What the pages of one room share: its name, its state, the way between them.

import { api, find, lastFrame, learn, session } from "./feed.js";
import { el, full24, put, stale, stateOf } from "./parts.js";

const TABS = [
  ["", "Now", "monitor"],
  ["schedule", "Schedule", "viewer"],
  ["visitors", "Visitors", "viewer"],
  ["targeting", "Targeting", "viewer"],
  ["branding", "Branding", "viewer"],
  ["settings", "Settings", "viewer"],
  ["journal", "Journal", "viewer"],
  ["install", "Install", "viewer"],
];

// roomPage makes a page of a room. content(room) answers {node, draw?(r, changed), leave?(), acts?()}, where room is
// {id, path, now(): its latest figures, post(what, body): an act on it}.
export function roomPage(id, tab, content) {
  const base = "#/rooms/" + encodeURIComponent(id);
  const room = {
    id,
    base,
    path: "/rooms/" + encodeURIComponent(id),
    now: () => find(id) || {},
    // What the server answers to an act shows at once, before the next frame.
    async post(what, body) {
      const answer = await api("POST", room.path + what, body);
      learn(answer.stats || answer);
      return answer;
    },
    // save changes what is named of the room's settings.
    async save(body) {
      const answer = await api("POST", "/rooms", { id, ...body });
      learn(answer);
      return answer;
    },
  };
  const title = el("h1", {});
  const badge = el("span.state.live", {});
  const age = el("p.age", {});
  const tabs = el("nav.tabs", { "aria-label": "Pages of this room" }, ...TABS.filter(([, , role]) => session.may(role)).map(([path, name]) => el("a", { href: base + (path && "/" + path), "aria-current": path === tab && "page" }, name)));
  const inside = content(room);
  const body = el("div", {}, inside.node);
  const node = el("div.room", {}, el("p.crumb", {}, el("a", { href: "#/" }, "Rooms")), el("div.head", {}, title, badge), tabs, age, body);
  let there = false;
  return {
    node,
    leave: () => inside.leave?.(),
    acts: () => (there && inside.acts?.()) || [],
    draw(changed) {
      const r = room.now();
      if (!r.id) {
        if (!lastFrame) return;
        put(title, there ? `${id} is gone.` : `There is no room ${id}.`);
        tabs.hidden = body.hidden = badge.hidden = true;
        return;
      }
      there = true;
      tabs.hidden = body.hidden = badge.hidden = false;
      document.title = `${r.waiting ?? "–"} waiting · ${r.name || id} · Queue Manager`;
      put(title, r.name || id);
      badge.dataset.s = stateOf(r);
      put(badge, r.error ? "out of reach" : stateOf(r) === "scheduled" && r.opensAt ? `scheduled for ${full24(r.opensAt)}` : stateOf(r));
      stale(node, age, lastFrame);
      inside.draw?.(r, changed);
    },
  };
}
