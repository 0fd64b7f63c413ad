// One visitor of a room, found by what they read out; their story in words; and
// sending them to the back.

import { api, session } from "./feed.js";
import { act, ask, control, el, fail, full24, num, put, readdress, span, when, why } from "./parts.js";
import { roomPage } from "./room-head.js";

const KINDS = { ref: ["Code on their page", "text"], ticket: ["Ticket", "number"], handle: ["Entry before the draw", "number"] };
const STATES = { waiting: "waits in line", held: "is held: the line steps over them", enqueued: "waits for the draw", passed: "may enter", inside: "is inside", expired: "was let in and did not come, or stayed too long", left: "left", reset: "lost the place by an act of ours" };

export const page = ({ id, query }) =>
  roomPage(id, "visitors", (room) => {
    const by = el("select", { id: "by" }, ...Object.entries(KINDS).map(([k, [words]]) => el("option", { value: k, selected: query.has(k) }, words)));
    const value = el("input", { id: "who2", required: true, autocomplete: "off", spellcheck: "false", value: query.get("ref") || query.get("ticket") || query.get("handle") || "" });
    const out = el("p.out", { role: "status" });
    const found = el("div");
    const form = el("form.row", { onsubmit: (e) => (e.preventDefault(), look()) }, el("div", {}, el("label", { for: "by" }, "Look for"), by), el("div", {}, el("label", { for: "who2" }, "Value"), value), el("button.main", { type: "submit" }, "Look up"));
    async function look() {
      put(out, "Looking");
      out.className = "out";
      found.replaceChildren();
      try {
        const asked = `${by.value}=${encodeURIComponent(value.value.trim())}`;
        const v = await api("GET", `${room.path}/visitors?${asked}`);
        readdress(`${room.base}/visitors?${asked}`);
        put(out, v.ambiguous ? "This code fits several people. Ask for their ticket." : "");
        found.replaceChildren(...(v.ambiguous ? v.candidates.map((c) => el("p", {}, el("button.link", { type: "button", onclick: () => ((by.value = c.ticket ? "ticket" : "handle"), (value.value = c.ticket || c.handle), look()) }, c.ticket ? `Ticket ${num(c.ticket)}` : `Entry ${num(c.handle)}`), `, ${STATES[c.state] || c.state}${c.position ? `, place ${num(c.position)}` : ""}`)) : [shown(v)]));
      } catch (e) {
        if (e.code === "visitor_not_found") put(out, "Nobody in this room has that. A place of an earlier generation, or one that was purged, is not found either.");
        else fail(out, e);
      }
    }
    const shown = (v) => {
      const fact = (k, text) => text && el("div", {}, el("dt", {}, k), el("dd", {}, text));
      const s = v.session;
      const reason = why("ejectWhy");
      const button = el("button.bad", { type: "button" }, "Send to the back");
      const c = control(el("p.hint", {}, "Takes the pass or the door session back; the person gets a new place at the end of the line."), el("div.row", {}, reason.node, button));
      button.addEventListener("click", () =>
        ask(c.box, `1 person, ticket ${num(v.ticket)}, loses ${v.state === "waiting" || v.state === "held" ? `place ${num(v.position)}` : "the way in"} and goes behind ${num(room.now().waiting)} others.`, "Send to the back", () =>
          act(c.out, button, () => room.post("/eject", { ticket: v.ticket, ...reason.body() }), (a) => `Ticket ${num(a.ejected)} ejected${a.ticket ? `; the person now holds ticket ${num(a.ticket)}, at the back` : ""}.`),
        ),
      );
      return el(
        "div",
        {},
        el("h2", {}, `${v.ticket ? `Ticket ${num(v.ticket)}` : `Entry ${num(v.handle)}`} ${STATES[v.state] || v.state}`),
        el(
          "dl.plain",
          {},
          fact("Code", v.ref),
          fact("Place", v.position && `${num(v.position)}, ${num(v.ahead)} ahead`),
          fact("Wait", v.position && (v.etaSec == null ? "unknown" : span(v.etaSec))),
          fact("Joined", v.joinedAt && full24(v.joinedAt)),
          fact("Let in", v.passedAt && full24(v.passedAt)),
          fact("Pass ends in", v.passExpiresInSec != null && span(v.passExpiresInSec)),
          fact("Door session", s && `${s.open ? "open" : "ended"}, since ${full24(s.enteredAt)}, last seen ${full24(s.seenAt)}`),
          fact("Bound to", v.binding && el("span", {}, "browser ", el("code", {}, v.binding.browser.slice(0, 12) + "…"), v.binding.door ? el("span", {}, ", door ", el("code", {}, v.binding.door.slice(0, 12) + "…")) : "")),
        ),
        el("h2", {}, "Story"),
        v.story?.length ? el("ol.story", {}, ...v.story.map((e) => el("li", {}, when(e.at), ` ${e.text}`, ["visitor", "clock"].includes(e.actor) ? "" : el("span.soft", {}, ` by ${e.actor}`)))) : el("p.soft", {}, "The journal tells nothing of this place."),
        v.truncated && el("p.hint", {}, "There is more than could be told in time."),
        v.ticket && session.may("operator") && !["expired", "left", "reset"].includes(v.state) && c.node,
      );
    };
    if (value.value) look();
    return { node: el("section.panel", { "aria-label": "A visitor" }, el("h2", {}, "A visitor"), el("p.hint", {}, "By the code on their waiting page, or by ticket. Names and addresses are not kept here."), form, out, found) };
  });
