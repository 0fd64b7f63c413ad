// One room's page: its figures, its controls and its journal.

import { api, find, forget, lastFrame, learn } from "./feed.js";
import { act, ask, clockOf, el, eta, fail, full24, graph, lineOf, num, people, preOf, put, rateOf, rateSays, since, stale, stateOf } from "./parts.js";

export function page({ id }) {
  const path = "/rooms/" + encodeURIComponent(id);
  const now = () => find(id) || {};
  const title = el("h1", {});
  const badge = el("span.state.live", {});
  const age = el("p.age", {});
  const chart = el("div.live", {});
  const chartSays = el("p.hint", {});
  const facts = {};
  const dl = el("dl.facts.live", {}, ...["Waiting", "In a minute", "Out a minute", "Oldest wait", "Wait if you join now", "Inside"].map((k) => el("div", {}, el("dt", {}, k), (facts[k] = el("dd", {}, "–")))));

  // What the server answers to an act shows at once, before the next frame.
  const post = async (what, body) => {
    const answer = await api("POST", path + what, body);
    learn(answer.stats || answer);
    return answer;
  };

  const control = (...children) => {
    const c = { out: el("p.out", { role: "status" }), box: el("div") };
    c.node = el("div.control", {}, ...children, c.box, c.out);
    return c;
  };
  const number = (name, label, attrs) => {
    const input = el("input", { id: name, type: "number", min: 0, step: 1, required: true, inputmode: "numeric", ...attrs });
    return { input, node: el("div", {}, el("label", { for: name }, label), input) };
  };

  // State
  const states = ["active", "paused", "bypass"].map((s) => {
    const words = { active: "Active", paused: "Paused", bypass: "Bypass" }[s];
    return el("button", { type: "button", "data-s": s, onclick: () => setState(s) }, words);
  });
  const state = control(el("p.legend", { id: "stateL" }, "State"), el("div.seg", { role: "group", "aria-labelledby": "stateL" }, ...states));
  const setState = (s) => {
    const button = states.find((b) => b.dataset.s === s);
    const run = () => act(state.out, button, () => post("/state", { state: s }), () => ({ active: "The line moves.", paused: "The line is paused; places are kept.", bypass: "The line is off: everyone goes straight in." })[s]);
    const n = (now().waiting || 0) + (preOf(now()) || 0);
    if (s === "bypass" && n) ask(state.box, `Bypass lets ${people(n)} in at once. Can the site take that?`, "Let everyone in", run);
    else run();
  };

  // Rate
  const rate = number("rate", "People a minute");
  const rateHint = el("p.hint", { id: "rateHint" });
  rate.input.setAttribute("aria-describedby", "rateHint");
  const rateButton = el("button.main", { type: "submit" }, "Set the rate");
  const rateC = control(el("form.row", { onsubmit: (e) => (e.preventDefault(), setRate()) }, rate.node, rateButton), rateHint);
  const sayRate = () => put(rateHint, rateSays(now(), rate.input.value === "" ? NaN : Number(rate.input.value)));
  let rateTouched = false;
  rate.input.addEventListener("input", () => ((rateTouched = true), sayRate()));
  const setRate = async () => {
    const v = Number(rate.input.value);
    const was = rateOf(now());
    if (await act(rateC.out, rateButton, () => post("/rate", { ratePerMinute: v }), () => `${num(v)} a minute, before it was ${num(was)}.`)) rateTouched = false;
  };

  // Flush
  const flush = number("flush", "Let in now", { min: 1, value: 10 });
  const flushButton = el("button", { type: "submit" }, "Let them in");
  const flushC = control(el("form.row", { onsubmit: (e) => (e.preventDefault(), doFlush()) }, flush.node, flushButton), el("p.hint", {}, "The first in line pass at once, whatever the rate."));
  const doFlush = () => {
    const n = Number(flush.input.value);
    const run = () => act(flushC.out, flushButton, () => post("/flush", { count: n }), (a) => `${people(a.flushed)} let in.`);
    if (n > 100) ask(flushC.box, `This lets ${people(Math.min(n, now().waiting ?? n))} in at once. Can the site take that?`, "Let them in", run);
    else run();
  };

  // Schedule
  const opens = el("input", { id: "opens", type: "datetime-local", required: true });
  const openButton = el("button", { type: "submit" }, "Schedule");
  const cancelButton = el("button", { type: "button", onclick: () => cancelDrop() }, "Cancel the opening");
  const openHint = el("p.hint", {});
  const openC = control(
    el("form.row", { onsubmit: (e) => (e.preventDefault(), schedule()) }, el("div", {}, el("label", { for: "opens" }, "Doors open"), opens), openButton, cancelButton),
    openHint,
  );
  const schedule = () => {
    const at = new Date(opens.value).getTime();
    act(openC.out, openButton, () => post("/schedule", { opensAt: at }), () => `The doors open at ${full24(at)}. Until then people gather, and the order is drawn.`);
  };
  const cancelDrop = () => {
    const n = preOf(now()) || 0;
    const run = () => act(openC.out, cancelButton, () => post("/schedule", { opensAt: null }), () => "There is no opening set.");
    if (n) ask(openC.box, `${people(n)} are waiting for the opening. Cancelling draws their places now.`, "Cancel the opening", run);
    else run();
  };

  // Message
  const message = el("textarea", { id: "message", rows: 2, maxlength: 2000 });
  const messageButton = el("button", { type: "submit" }, "Publish");
  const messageC = control(
    el("form", { onsubmit: (e) => (e.preventDefault(), publish()) }, el("label", { for: "message" }, "Message to everyone in line"), message, el("div.row", {}, messageButton)),
  );
  let messageTouched = false;
  message.addEventListener("input", () => (messageTouched = true));
  const publish = async () => {
    const { name, logoUrl, color, background } = now().branding || {};
    const branding = { message: message.value.trim() };
    for (const [k, v] of Object.entries({ name, logoUrl, color, background })) if (v) branding[k] = v;
    const run = () => api("POST", "/rooms", { id, branding });
    if (await act(messageC.out, messageButton, run, () => (branding.message ? "Everyone in line can read it." : "There is no message."))) messageTouched = false;
  };

  // Eject
  const ticket = number("ticket", "Ticket to the back", { min: 1 });
  const ejectButton = el("button", { type: "submit" }, "Eject");
  const ejectC = control(
    el(
      "form.row",
      { onsubmit: (e) => (e.preventDefault(), act(ejectC.out, ejectButton, () => post("/eject", { ticket: Number(ticket.input.value) }), (a) => `Ticket ${num(a.ejected)} ejected${a.ticket ? `; the person now holds ticket ${num(a.ticket)}, at the back` : ""}.`)) },
      ticket.node,
      ejectButton,
    ),
    el("p.hint", {}, "Takes the pass or the door session back; the person gets a new place at the end."),
  );

  // Purge and delete
  const purgeButton = el("button.bad", { type: "button", onclick: () => purge() }, "Purge the line");
  const deleteButton = el("button.bad", { type: "button", onclick: () => remove() }, "Delete the room");
  const endC = control(el("p.legend", {}, "End"), el("div.seg", {}, purgeButton, deleteButton));
  const purge = () => {
    const n = (now().waiting || 0) + (preOf(now()) || 0);
    ask(endC.box, n ? `${people(n)} lose their places; none of them is let in. This cannot be undone.` : "Nobody is waiting. Purge all the same?", "Purge the line", () =>
      act(endC.out, purgeButton, () => post("/purge"), (a) => `${people(a.purged)} taken out of the line.`),
    );
  };
  const remove = () => {
    const n = (now().waiting || 0) + (preOf(now()) || 0);
    ask(endC.box, `Delete ${id}?${n ? ` ${people(n)} lose their places.` : ""} Passes end too. This cannot be undone.`, "Delete the room", async () => {
      if (await act(endC.out, deleteButton, () => api("DELETE", path), () => "Deleted.")) {
        forget(id);
        location.hash = "#/";
      }
    });
  };

  // The line's address
  const copy = el(
    "button",
    {
      type: "button",
      onclick: async () => {
        try {
          await navigator.clipboard.writeText(lineOf(id));
          put(copy, "Copied");
        } catch {
          put(copy, "Copying is not allowed here");
        }
      },
    },
    "Copy",
  );
  const log = journal(path, now);
  const node = el(
    "div",
    {},
    el("p.crumb", {}, el("a", { href: "#/" }, "Rooms")),
    el("div.head", {}, title, badge),
    el("div.panel", {}, dl, chart, chartSays, el("div.line", {}, el("span.soft", {}, "The line:"), el("a", { href: "/w/" + encodeURIComponent(id), target: "_blank", rel: "noreferrer" }, el("code", {}, lineOf(id))), copy)),
    age,
    el("div.cols", {}, el("section.panel", { "aria-label": "Controls" }, el("h2", {}, "Controls"), state.node, rateC.node, messageC.node, flushC.node, openC.node, ejectC.node, endC.node), log.node),
  );
  return {
    node,
    leave: log.leave,
    draw() {
      const r = now();
      if (!r.id) {
        if (lastFrame) put(title, `There is no room ${id}.`);
        return;
      }
      document.title = `${num(r.waiting)} waiting · ${r.name || id} · Queue Manager`;
      put(title, r.name || id);
      badge.dataset.s = stateOf(r);
      put(badge, r.error || (stateOf(r) === "scheduled" && r.opensAt ? `scheduled for ${full24(r.opensAt)}` : stateOf(r)));
      put(facts["Waiting"], num(r.waiting) + (preOf(r) ? ` + ${num(preOf(r))}` : "") + (r.held ? ` (${num(r.held)} held)` : ""));
      put(facts["In a minute"], num(r.joinedLastMin));
      put(facts["Out a minute"], `${num(r.passedLastMin)} of ${num(rateOf(r))}`);
      since(facts["Oldest wait"], r.oldestWaitSec);
      put(facts["Wait if you join now"], eta(r));
      put(facts["Inside"], num(r.live) + (r.maxConcurrent ? ` of ${num(r.maxConcurrent)}` : ""));
      const series = r.sparkline || [];
      chart.replaceChildren(graph("chart", series));
      const minutes = series.length ? Math.max(1, Math.round((Date.now() - series[0][0]) / 6e4)) : 0;
      put(chartSays, `People waiting${minutes ? `, last ${minutes === 1 ? "minute" : `${minutes} minutes`}` : ""}; at most ${num(Math.max(0, ...series.map((p) => p[1])))}.`);
      for (const b of states) b.setAttribute("aria-pressed", String(b.dataset.s === r.state));
      if (!rateTouched && document.activeElement !== rate.input && rateOf(r) != null) rate.input.value = rateOf(r);
      sayRate();
      messageC.node.hidden = !r.branding; // whoever may not read it should not overwrite it
      if (!messageTouched && document.activeElement !== message) message.value = r.branding?.message || "";
      cancelButton.hidden = !r.opensAt || stateOf(r) !== "scheduled";
      put(openHint, stateOf(r) === "scheduled" ? `Set for ${full24(r.opensAt)}; ${people(preOf(r) || 0)} here.` : "In your own time zone. Those who are here at the opening get their places by draw.");
      stale(node, age, lastFrame);
    },
  };
}

// The last events of a room's journal, newest first.
function journal(path, now) {
  const list = el("ol.journal", {});
  const out = el("p.out", {});
  const about = el("p.hint", {}, "What happened in this room, newest first. Point at one for its number, instant and actor.");
  const node = el("section.panel", { "aria-label": "Journal" }, el("h2", {}, "Journal"), about, list, out);
  const KEEP = 100;
  let after = null;
  let timer = 0;
  let gone = false;
  const line = (e) => {
    const at = e.at ?? e.time;
    const facts = `${e.seq ?? "–"}${at ? ", " + full24(at) : ""}, by ${e.actor || "–"}`;
    return el("li", { tabindex: -1, title: facts, "data-about": facts }, el("span.soft", {}, at ? clockOf(at) : "–"), el("b", {}, e.kind || "–"), el("span.soft", {}, detail(e.body) + (e.actor && !["visitor", "clock"].includes(e.actor) ? ` by ${e.actor}` : "")));
  };
  // The list is one stop on the way of the Tab key; the arrows go through it.
  const stand = (li) => {
    for (const other of list.querySelectorAll('[tabindex="0"]')) other.tabIndex = -1;
    if (li) li.tabIndex = 0;
  };
  const tell = (event) => {
    const li = event.target.closest?.("li");
    if (li) put(about, `No. ${li.dataset.about}.`);
    if (li && event.type === "focusin") stand(li);
  };
  list.addEventListener("focusin", tell);
  list.addEventListener("pointerover", tell);
  list.addEventListener("keydown", (event) => {
    const li = event.target.closest("li");
    const next = { ArrowDown: li?.nextSibling, ArrowUp: li?.previousSibling, Home: list.firstChild, End: list.lastChild }[event.key];
    if (next) event.preventDefault(), next.focus();
  });
  const detail = (body) => {
    const b = typeof body === "string" ? body : JSON.stringify(body ?? {});
    const plain = b.replace(/([\w+/=-]{8})[\w+/=-]{12,}/g, "$1…").replace(/^\{|\}$/g, "").replace(/"/g, "").replace(/,/g, ", ").replace(/:/g, " ");
    return plain.length > 120 ? plain.slice(0, 119) + "…" : plain;
  };
  async function more() {
    try {
      // Begin near the head, where the room says how far it is.
      if (after === null) after = Math.max(0, (now().seq ?? 0) - KEEP);
      for (let rounds = 0; rounds < 50; rounds++) {
        const data = await api("GET", `${path}/journal?after=${after}&limit=500`);
        if (gone) return;
        const events = Array.isArray(data) ? data : data.events || data.records || [];
        if (!events.length) break;
        after = events.at(-1).seq;
        list.prepend(...events.slice(-KEEP).reverse().map(line));
        while (list.children.length > KEEP) list.lastChild.remove();
        if (!list.querySelector('[tabindex="0"]')) stand(list.firstChild);
        if (events.length < 500) break;
      }
      put(out, list.children.length ? "" : "Nothing has happened yet.");
      out.className = "out";
    } catch (e) {
      fail(out, e);
    }
    if (!gone) timer = setTimeout(more, 3000);
  }
  timer = setTimeout(more, 0);
  return { node, leave: () => ((gone = true), clearTimeout(timer)) };
}
