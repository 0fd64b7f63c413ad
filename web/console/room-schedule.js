// When the doors open, once or several times, and the proof of the draw.

import { publicly, serverAhead, session } from "./feed.js";
import { act, ask, control, copier, el, full24, load, num, people, preOf, put, span } from "./parts.js";
import { roomPage } from "./room-head.js";

// An instant as datetime-local has it, in the operator's zone, and back.
const local = (at) => (at ? new Date(at - new Date(at).getTimezoneOffset() * 60_000).toISOString().slice(0, 16) : "");
const instant = (text) => (text ? new Date(text).getTime() : null);

export const page = ({ id }) =>
  roomPage(id, "schedule", (room) => {
    const may = session.may("operator");
    const { now, post } = room;

    // The next opening
    const opens = el("input", { id: "opens", type: "datetime-local", required: true });
    const openButton = el("button.main", { type: "submit" }, "Schedule");
    const cancelButton = el("button", { type: "button", onclick: () => cancel() }, "Cancel the opening");
    const openHint = el("p.hint");
    const openC = control(may && el("form.row", { onsubmit: (e) => (e.preventDefault(), schedule()) }, el("div", {}, el("label", { for: "opens" }, "Doors open"), opens), openButton, cancelButton), openHint);
    const to = (at) => ({ run: () => post("/schedule", { opensAt: at }), done: () => (at ? `The doors open at ${full24(at)}. Until then people gather, and the order is drawn.` : "There is no opening set.") });
    const schedule = () => {
      const at = instant(opens.value);
      const was = now().opensAt && now().opensAt > Date.now() ? now().opensAt : null;
      act(openC.out, openButton, to(at).run, to(at).done, preOf(now()) && !was ? null : to(was));
    };
    const cancel = () => {
      const n = preOf(now()) || 0;
      const was = now().opensAt;
      if (n) ask(openC.box, `${people(n)} are waiting for the opening. Cancelling draws their places now.`, "Cancel the opening", () => act(openC.out, cancelButton, to(null).run, to(null).done));
      else act(openC.out, cancelButton, to(null).run, to(null).done, to(was));
    };

    // Several openings
    const rows = el("ol.openings");
    const row = (o = {}) => {
      const li = el("li.row", {}, el("label", {}, "Opens", el("input", { type: "datetime-local", required: true, value: local(o.opensAt), disabled: !may })), el("label", {}, "Closes, or stays open", el("input", { type: "datetime-local", value: local(o.closesAt), disabled: !may })), may && el("button", { type: "button", onclick: () => ((touched = true), li.remove()) }, "Remove"));
      li.addEventListener("input", () => (touched = true));
      return li;
    };
    let touched = false;
    let shownAs = "";
    const saveAll = el("button.main", { type: "submit" }, "Save the openings");
    const allC = control(
      el("form", { onsubmit: (e) => (e.preventDefault(), saveOpenings()) }, rows, may && el("div.row", {}, el("button", { type: "button", onclick: () => ((touched = true), rows.append(row()), rows.lastChild.querySelector("input").focus()) }, "Add an opening"), saveAll)),
      el("p.hint", {}, "Each ends before the next begins. In your own time zone."),
    );
    const saveOpenings = () => {
      const was = now().openings || [];
      const list = [...rows.children].map((li) => {
        const [a, b] = li.querySelectorAll("input");
        return { opensAt: instant(a.value), closesAt: instant(b.value) };
      });
      const set = (next) => ({ run: () => room.save({ openings: next.length ? next : null }), done: () => ((touched = false), next.length === 1 ? "1 opening is set." : `${num(next.length)} openings are set.`) });
      act(allC.out, saveAll, set(list).run, set(list).done, was.every((o) => o.opensAt > Date.now()) ? set(was) : null);
    };

    // The draw
    const proof = el("div");
    const seeProof = load(
      proof,
      () => publicly(`/rooms/${encodeURIComponent(id)}`),
      (p) => {
        const fact = (k, v) => v != null && el("div", {}, el("dt", {}, k), el("dd", {}, typeof v === "string" && v.length > 30 ? el("code", {}, v) : v));
        if (!p.commitment && !p.seed) return el("p.soft", {}, "No draw yet. Once an opening is set, its commitment stands here and on the waiting page; after the draw, everything that proves it.");
        return [
          el("dl.plain", {}, fact("Commitment", p.commitment), fact("Secret, revealed", p.secret), fact("Head of the journal", p.head), fact("Seed", p.seed), fact("Drawn", p.drawnAt && full24(p.drawnAt)), fact("Places", p.count != null ? `${num(p.count)}, from ticket ${num(p.first)}` : null), fact("Digest of the order", p.digest)),
          p.seed && el("p.hint", {}, "The commitment is the SHA-256 of the secret; the seed is HMAC-SHA256 of the head with the secret as key; the order follows from seed and entries alone. Anybody can check it: "),
          p.seed && el("div.line", {}, el("code", {}, `qm-replay draw --room ${id}`), copier(`qm-replay draw --room ${id}`)),
        ];
      },
    );
    let drawnFor = "";
    return {
      node: el(
        "div",
        {},
        el("section.panel", { "aria-label": "The next opening" }, el("h2", {}, "The next opening"), openC.node),
        el("section.panel", { "aria-label": "Several openings" }, el("h2", {}, "Several openings"), allC.node),
        el("section.panel", { "aria-label": "The draw" }, el("h2", {}, "The draw"), proof),
      ),
      draw(r) {
        const ahead = r.opensAt && r.opensAt > Date.now() + serverAhead;
        cancelButton.hidden = !ahead;
        put(openHint, ahead ? `Set for ${full24(r.opensAt)}, in ${span((r.opensAt - Date.now() - serverAhead) / 1000)}; ${people(preOf(r) || 0)} here.` : "In your own time zone. Those who are here at the opening get their places by draw.");
        const list = JSON.stringify(r.openings || []);
        if (!touched && list !== shownAs && !rows.contains(document.activeElement)) {
          shownAs = list;
          rows.replaceChildren(...(r.openings || []).map(row));
        }
        const state = `${r.generation} ${r.opensAt} ${r.effectiveState} ${r.commitment}`;
        if (drawnFor && drawnFor !== state) seeProof();
        drawnFor = state;
      },
    };
  });
