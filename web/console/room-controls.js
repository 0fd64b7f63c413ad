// The acts on a room that an operator reaches for in a surge, each with what is
// so now, what will be, and what that does.

import { api, forget, session } from "./feed.js";
import { act, ask, control, el, num, number, people, preOf, put, rateOf, rateSays, stateOf, why } from "./parts.js";

const WORDS = { active: "Active", paused: "Paused", bypass: "Bypass" };
const SAID = { active: "The line moves.", paused: "The line is paused; places are kept.", bypass: "The line is off: everyone goes straight in." };
const MANY = 100; // a flush of more asks first

// controls makes them for a room: {node, draw(r), bar: for the thumb, acts()}.
export function controls(room) {
  const { now, post } = room;
  const here = () => (now().waiting || 0) + (now().held || 0) + (preOf(now()) || 0);

  // State
  const states = Object.keys(WORDS).map((s) => el("button", { type: "button", "data-s": s, onclick: () => setState(s) }, WORDS[s]));
  const stateHint = el("p.hint");
  const state = control(el("p.legend", { id: "stateL" }, "State"), el("div.seg", { role: "group", "aria-labelledby": "stateL" }, ...states), stateHint);
  const setState = (s) => {
    const was = now().state;
    if (was === s) return;
    const button = states.find((b) => b.dataset.s === s);
    const to = (mode) => ({ run: () => post("/state", { state: mode }), done: () => SAID[mode] });
    const run = () => act(state.out, button, to(s).run, to(s).done, was in WORDS && was !== "bypass" ? to(was) : null);
    const n = here();
    if (s === "bypass" && (n || now().joinedLastMin > MANY))
      ask(state.box, `Bypass lets ${people(n)} in at once, and everyone who comes after them${now().joinedLastMin ? `, ${num(now().joinedLastMin)} in the last minute` : ""}. Can the site take that?`, "Let everyone in", run);
    else run();
  };

  // Rate
  const rate = number("rate", "People a minute", { max: 100_000 });
  const rateHint = el("p.hint", { id: "rateHint" });
  rate.input.setAttribute("aria-describedby", "rateHint");
  const rateButton = el("button.main", { type: "submit" }, "Set the rate");
  const rateNow = el("p.was");
  const rateC = control(el("form.row", { onsubmit: (e) => (e.preventDefault(), setRate()) }, rate.node, rateButton, rateNow), rateHint);
  const sayRate = () => put(rateHint, rateSays(now(), rate.input.value === "" ? NaN : Number(rate.input.value)));
  let rateTouched = false;
  rate.input.addEventListener("input", () => ((rateTouched = true), sayRate()));
  const setRate = async () => {
    const v = Number(rate.input.value);
    const was = rateOf(now());
    const to = (next, before) => ({ run: () => post("/rate", { ratePerMinute: next }), done: () => ((rateTouched = false), `${num(next)} a minute, before it was ${num(before)}.`) });
    await act(rateC.out, rateButton, to(v, was).run, to(v, was).done, was === v ? null : to(was, v));
  };

  // Message
  const message = el("textarea", { id: "message", rows: 2, maxlength: 500, "aria-describedby": "messageHint" });
  const messageButton = el("button", { type: "submit" }, "Publish");
  const messageHint = el("p.hint", { id: "messageHint" });
  const messageC = control(el("form", { onsubmit: (e) => (e.preventDefault(), publish()) }, el("label", { for: "message" }, "Message to everyone in line"), message, el("div.row", {}, messageButton)), messageHint);
  let messageTouched = false;
  message.addEventListener("input", () => ((messageTouched = true), sayMessage()));
  const sayMessage = () => put(messageHint, message.value.trim() ? `${people(here())} in line read it at once; ${num(500 - message.value.length)} letters are left.` : "Nothing is shown.");
  const publish = () => {
    const was = now().branding?.message || "";
    const to = (text) => ({ run: () => room.save({ branding: { message: text } }), done: () => ((messageTouched = false), text ? "Everyone in line can read it." : "There is no message.") });
    act(messageC.out, messageButton, to(message.value.trim()).run, to(message.value.trim()).done, to(was));
  };

  // Flush
  const flush = number("flush", "Let in now", { min: 1, max: 1_000_000, value: 10 });
  const flushWhy = why("flushWhy");
  const flushButton = el("button", { type: "submit" }, "Let them in");
  const flushHint = el("p.hint");
  const flushC = control(el("form.row", { onsubmit: (e) => (e.preventDefault(), doFlush()) }, flush.node, flushWhy.node, flushButton), flushHint);
  const doFlush = () => {
    const n = Number(flush.input.value);
    const run = () => act(flushC.out, flushButton, () => post("/flush", { count: n, ...flushWhy.body() }), (a) => (flushWhy.clear(), `${people(a.flushed)} let in.`));
    if (n > MANY) ask(flushC.box, `This lets ${people(Math.min(n, now().waiting ?? n))} in at once. Can the site take that?`, "Let them in", run);
    else run();
  };

  // Purge and delete
  const purgeWhy = why("purgeWhy");
  const purgeButton = el("button.bad", { type: "button", onclick: () => purge() }, "Purge the line");
  const deleteButton = session.may("owner") && el("button.bad", { type: "button", onclick: () => remove() }, "Delete the room");
  const endC = control(purgeWhy.node, el("div.seg", {}, purgeButton, deleteButton));
  const purge = () => {
    const n = here();
    ask(endC.box, n ? `${people(n)} lose their places; none of them is let in. This cannot be undone.` : "Nobody is waiting. Purge all the same?", "Purge the line", () =>
      act(endC.out, purgeButton, () => post("/purge", purgeWhy.body()), (a) => (purgeWhy.clear(), `${people(a.purged)} taken out of the line.`)),
    );
  };
  const remove = () => {
    const n = here();
    const live = now().live || 0;
    ask(endC.box, `Delete ${room.id}?${n ? ` ${people(n)} lose their places.` : ""}${live ? ` ${people(live)} inside or on their way in lose their passes.` : ""} This cannot be undone.`, "Delete the room", async () => {
      if (await act(endC.out, deleteButton, () => api("DELETE", room.path), () => "Deleted.")) {
        forget(room.id);
        location.hash = "#/";
      }
    });
  };

  // For the thumb: what is needed most, on a narrow screen always in reach.
  const reach = (input) => () => (input.scrollIntoView({ block: "center" }), input.focus({ preventScroll: true }));
  const toggle = el("button.main", { type: "button", onclick: () => setState(now().state === "active" ? "paused" : "active") });
  const bar = el("div.thumb", { role: "group", "aria-label": "In reach" }, toggle, el("button", { type: "button", onclick: reach(rate.input) }, "Rate"), el("button", { type: "button", onclick: reach(message) }, "Message"));

  const more = el("details.more", {}, el("summary", {}, "End the line"), endC.node);
  return {
    node: el("section.panel.controls", { "aria-label": "Controls" }, el("h2", {}, "Controls"), state.node, rateC.node, messageC.node, flushC.node, more),
    bar,
    acts: () => [
      ...Object.keys(WORDS).filter((s) => s !== now().state).map((s) => ({ name: { active: "Let the line move", paused: "Pause the line", bypass: "Switch the line off (bypass)" }[s], run: () => (state.node.scrollIntoView({ block: "center" }), setState(s)) })),
      { name: "Set the rate", run: reach(rate.input) },
      { name: "Write to everyone in line", run: reach(message) },
      { name: "Let people in now", run: reach(flush.input) },
    ],
    draw(r) {
      for (const b of states) b.setAttribute("aria-pressed", String(b.dataset.s === r.state));
      put(stateHint, stateOf(r) === "scheduled" ? "The doors are shut until the opening. The state holds from then on." : "");
      put(toggle, r.state === "active" ? "Pause" : "Let it move");
      if (!rateTouched && document.activeElement !== rate.input && rateOf(r) != null) rate.input.value = rateOf(r);
      put(rateNow, Number(rate.input.value) === rateOf(r) ? "" : `now ${num(rateOf(r))}`);
      sayRate();
      messageC.node.hidden = !r.branding; // whoever may not read it should not overwrite it
      if (!messageTouched && document.activeElement !== message) message.value = r.branding?.message || "";
      sayMessage();
      const free = r.maxConcurrent && r.slots != null ? Math.max(0, r.maxConcurrent - r.slots) : null;
      put(flushHint, `The first in line pass at once, whatever the rate.${free === null ? "" : ` ${num(free)} of ${num(r.maxConcurrent)} slots are free.`}`);
    },
  };
}
