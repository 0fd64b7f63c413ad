// The journal of a room: what happened, by kind or ticket, in words; and
// whether its hash chain holds.

import { api } from "./feed.js";
import { copier, el, fail, full24, num, put, readdress, table } from "./parts.js";
import { checkChain } from "./journal-chain.js";
import { roomPage } from "./room-head.js";
import { short } from "./room-lately.js";

const KINDS = ["create", "configure", "state", "schedule", "enqueue", "draw", "join", "pass", "unslot", "enter", "renew", "leave", "lapse", "eject", "purge", "close", "delete"];
const PAGE = 100;

export const page = ({ id, query }) =>
  roomPage(id, "journal", (room) => {
    const kind = el("select", { id: "kind" }, el("option", { value: "" }, "All"), ...KINDS.map((k) => el("option", { value: k, selected: k === query.get("kind") }, k)));
    const ticket = el("input", { id: "ticketF", type: "number", min: 1, inputmode: "numeric", value: query.get("ticket") || "" });
    const words = el("input", { id: "words", type: "checkbox", checked: query.get("words") === "1" });
    const events = table(
      "Events",
      [
        { name: "No.", cell: (e) => num(e.seq) },
        { name: "When", cell: (e) => full24(e.at) },
        { name: "Kind", cell: (e) => el("b", {}, e.kind) },
        { name: "What", cell: (e) => el("span.says", {}, e.text || short(e) || "–") },
        { name: "Who", cell: (e) => e.actor },
        { name: "Hash", cell: (e) => el("code", { title: e.hash }, e.hash.slice(0, 10) + "…") },
      ],
      "No event fits.",
    );
    const out = el("p.out", { role: "status" });
    const older = el("button", { type: "button", onclick: () => go(Math.max(0, after - PAGE)) }, "Older");
    const newer = el("button", { type: "button", onclick: () => go(next) }, "Newer");
    const newest = el("button", { type: "button", onclick: () => go(null) }, "Newest");
    let after = null;
    let next = 0;
    const filtered = () => kind.value || ticket.value;
    async function go(from) {
      // Filtered events are counted from the first on: where the last of them are nobody knows beforehand.
      after = from ?? (filtered() ? 0 : Math.max(0, (room.now().seq ?? 0) - PAGE));
      const asked = new URLSearchParams({ after, limit: PAGE });
      if (kind.value) asked.set("kind", kind.value);
      if (ticket.value) asked.set("ticket", ticket.value);
      if (words.checked) asked.set("words", "1");
      put(out, "Loading");
      out.className = "out";
      try {
        const answer = await api("GET", `${room.path}/journal?${asked}`);
        next = answer.after;
        events.fill(filtered() ? answer.events : answer.events.reverse());
        put(out, answer.events.length ? `${num(answer.events.length)} events${filtered() ? ", the oldest first" : ", the newest first"}.` : "");
        older.disabled = after === 0;
        newer.disabled = !answer.more;
        const kept = new URLSearchParams(Object.entries({ kind: kind.value, ticket: ticket.value, words: words.checked ? "1" : "" }).filter(([, v]) => v));
        readdress(`${room.base}/journal${kept.size ? "?" + kept : ""}`);
      } catch (e) {
        fail(out, e);
      }
    }
    const form = el(
      "form.row",
      { onsubmit: (e) => (e.preventDefault(), go(null)) },
      el("div", {}, el("label", { for: "kind" }, "Kind"), kind),
      el("div", {}, el("label", { for: "ticketF" }, "Ticket"), ticket),
      el("label.tick", {}, words, " in words"),
      el("button.main", { type: "submit" }, "Show"),
    );
    const chain = el("p.out", { role: "status" });
    const check = el("button", { type: "button" }, "Check the chain");
    check.addEventListener("click", async () => {
      if (check.ariaDisabled) return;
      check.ariaDisabled = "true";
      chain.className = "out";
      put(chain, "Reading");
      try {
        if (!globalThis.crypto?.subtle) throw new Error("This browser hashes only on https or localhost. qm-replay verify checks the chain too.");
        const r = await checkChain(room.path, (n) => put(chain, `${num(n)} events read`));
        chain.className = r.broken ? "out err" : "out";
        chain.replaceChildren(r.broken ? `Event ${num(r.broken)} does not follow from the one before it. qm-replay verify says more.` : `All ${num(r.count)} events follow from one another. Head: `, r.broken ? "" : el("code.head", {}, r.head), " ", r.broken ? "" : copier(r.head));
      } catch (e) {
        fail(chain, e);
      }
      check.ariaDisabled = null;
    });
    let first = true;
    return {
      node: el(
        "div",
        {},
        el("section.panel", { "aria-label": "Events" }, form, out, events.node, el("div.row.pager", {}, older, newer, newest, el("a.button", { href: `/api/admin${room.path}/journal?format=ndjson`, download: `${id}.ndjson` }, "Download all"))),
        el("section.panel", { "aria-label": "Hash chain" }, el("h2", {}, "Hash chain"), el("p.hint", {}, "Each event's hash covers the one before. Note the head elsewhere: it shows later whether a tail was cut."), el("div.row", {}, check), chain),
      ),
      draw(r) {
        if (first && r.seq != null) (first = false), go(null);
      },
      acts: () => [{ name: "Check the hash chain", run: () => check.click() }],
    };
  });
