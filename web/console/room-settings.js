// Every setting of a room that has no page of its own. Only what was changed is
// sent; what the server refuses stands at its field.

import { session } from "./feed.js";
import { act, control, el, num, put, wrong } from "./parts.js";
import { roomPage } from "./room-head.js";

const limit = (name, label, hint, most) => ({ name, label, hint: `${hint} Empty: no limit.`, kind: "limit", min: 1, max: most });
const count = (name, label, hint, most, min = 1) => ({ name, label, hint, kind: "number", min, max: most });
const GROUPS = [
  ["The room", [
    { name: "name", label: "Name", hint: "Visitors read it on the waiting page.", kind: "text", max: 200 },
    { name: "targetUrl", label: "Target address", hint: "Where visitors go when it is their turn.", kind: "text", max: 2048 },
  ]],
  ["Outflow", [
    limit("maxConcurrent", "At most inside at once", "People with a pass or a door session.", 10_000_000),
    count("passedTtlSec", "A pass is good for, seconds", "How long somebody whose turn it is has to come.", 86_400),
    count("sessionTtlSec", "A door session ends idle after, seconds", "Without a check in that time the visitor is out.", 86_400),
    count("sessionMaxSec", "A door session ends at last after, seconds", "However active the visitor is.", 604_800),
    limit("presenceSec", "Absent after, seconds", "Who was not seen for so long takes no slot.", 3600),
  ]],
  ["Caps", [
    limit("queueMaxPerIp", "Places from one address", "In the line.", 100_000),
    limit("preQueueMaxPerIp", "Entries from one address", "Before the draw.", 100_000),
  ]],
  ["The rate follows the target's health (autotune)", [
    { name: "autotune", kind: "rule", label: "Let the rate follow the target's health", parts: [count("floor", "Never below, a minute", "", 100_000), count("ceiling", "Never above, a minute", "", 100_000), count("step", "Step", "", 100_000), count("latencyMs", "Slow from, ms", "", 5000), count("errorPct", "Failing from, % errors", "", 99, 0)], start: { latencyMs: 800, errorPct: 5 } },
  ]],
  ["Queue in a surge (autoActivate)", [
    { name: "autoActivate", kind: "rule", label: "In bypass, begin to queue when many arrive", parts: [count("arrivalsPerMinute", "From arrivals a minute", "", 1_000_000), count("calmMinutes", "Until calm for, minutes", "", 1440)], start: { calmMinutes: 10 } },
  ]],
  ["The site", [
    { name: "returnOrigins", label: "Visitors may return to", hint: "Origins, one a line. The target's origin always counts.", kind: "list" },
    { name: "tagOrigins", label: "Pages that may ask", hint: "Origins whose pages carry the tag, one a line. Empty: as above.", kind: "list" },
    { name: "proxyOrigin", label: "Inline: forward to", hint: "The internal address of the site, such as http://10.0.0.7:8080. Empty: not inline.", kind: "text", max: 300 },
    { name: "onBackendDown", label: "When the store is down", hint: "What an inline room's gate does then.", kind: "choice", choices: { closed: "Keep visitors in line", open: "Let everyone through" } },
  ]],
  ["Protection", [
    {
      name: "protection", label: "Bots at the door", hint: "Monitor counts what enforce would refuse.", kind: "mode", choices: { off: "Off", monitor: "Monitor", enforce: "Enforce" },
      parts: [count("threshold", "Refuse from a score of", "", 100, 51), count("holdScore", "Hold from a score of", "", 100)],
      work: "Let a proof of work take the place of the refusal",
    },
  ]],
];

// make builds a setting's field: {node, input, inputs, value(): as the API takes it, show(v)}.
function make(s, may) {
  const id = "s-" + s.name.replace(".", "-");
  const base = { id, name: s.name, disabled: !may, "aria-describedby": s.hint ? id + "Hint" : null };
  const wrap = (input) => el("div.field", {}, el("label", { for: id }, s.label), input, s.hint && el("p.hint", { id: id + "Hint" }, s.hint));
  if (s.kind === "rule") {
    const on = el("input", { id, type: "checkbox", disabled: !may });
    const parts = s.parts.map((p) => make({ ...p, name: `${s.name}.${p.name}`, own: p.name }, may));
    const inner = el("div.row", { hidden: true }, ...parts.map((p) => p.node));
    const f = { input: on, node: el("div.field", {}, el("label.tick", { for: id }, on, " " + s.label), inner), inputs: Object.fromEntries([[s.name, on], ...parts.map((p) => [p.s.name, p.input])]), s };
    on.addEventListener("change", () => {
      inner.hidden = !on.checked;
      if (on.checked) for (const p of parts) if (p.input.value === "" && s.start[p.s.own] != null) p.input.value = s.start[p.s.own];
    });
    f.value = () => (on.checked ? Object.fromEntries(parts.map((p) => [p.s.own, p.value()]).filter(([, v]) => v !== null)) : null);
    f.show = (v) => {
      on.checked = Boolean(v);
      inner.hidden = !v;
      for (const p of parts) p.show(v?.[p.s.own]);
    };
    return f;
  }
  if (s.kind === "mode") {
    const mode = el("select", base, ...Object.entries(s.choices).map(([v, words]) => el("option", { value: v }, words)));
    const parts = s.parts.map((p) => make({ ...p, name: `${s.name}.${p.name}`, own: p.name }, may));
    const work = el("input", { id: id + "-work", type: "checkbox", disabled: !may });
    const inner = el("div", {}, el("div.row", {}, ...parts.map((p) => p.node)), el("label.tick", { for: id + "-work" }, work, " " + s.work));
    const f = { s, input: mode, node: el("div", {}, wrap(mode), inner), inputs: { [s.name]: mode } };
    const fold = () => (inner.hidden = mode.value === "off");
    mode.addEventListener("change", fold);
    f.value = () => (mode.value === "off" ? { mode: "off" } : { mode: mode.value, ...Object.fromEntries(parts.map((p) => [p.s.own, p.value()]).filter(([, v]) => v !== null)), work: work.checked });
    f.show = (v) => {
      mode.value = v?.mode || "off";
      for (const p of parts) p.show(v?.[p.s.own]);
      work.checked = Boolean(v?.work);
      fold();
    };
    return f;
  }
  let input;
  if (s.choices) input = el("select", base, ...Object.entries(s.choices).map(([v, words]) => el("option", { value: v }, words)));
  else if (s.kind === "list") input = el("textarea", { ...base, rows: 3, spellcheck: "false" });
  else if (s.kind === "text") input = el("input", { ...base, type: "text", maxlength: s.max, autocomplete: "off", spellcheck: "false" });
  else input = el("input", { ...base, type: "number", min: s.min, max: s.max, step: 1, inputmode: "numeric" });
  const f = { s, input, node: wrap(input), inputs: { [s.name]: input } };
  f.value = () => {
    const v = input.value.trim();
    if (s.kind === "list") return s.name === "tagOrigins" && !v ? null : v.split(/\s+/).filter(Boolean);
    if (s.kind === "number" || s.kind === "limit") return v === "" ? null : Number(v);
    return v;
  };
  f.show = (v) => {
    input.value = s.kind === "list" ? (v || []).join("\n") : (v ?? "");
  };
  return f;
}

const same = (a, b) => JSON.stringify(a ?? null) === JSON.stringify(b ?? null);

export const page = ({ id }) =>
  roomPage(id, "settings", (room) => {
    const may = session.may("operator");
    const groups = GROUPS.map(([title, settings]) => [title, settings.map((s) => make(s, may))]);
    const fields = groups.flatMap(([, list]) => list);
    const inputs = Object.assign({}, ...fields.map((f) => f.inputs));
    const save = el("button.main", { type: "submit" }, "Save");
    const says = el("p.hint");
    let shown = null;
    let was = {};
    const changed = () => Object.fromEntries(fields.filter((f) => !same(f.value(), was[f.s.name])).map((f) => [f.s.name, f.value()]));
    const say = () => {
      const names = Object.keys(changed());
      put(says, names.length ? `${names.length === 1 ? "1 setting" : `${num(names.length)} settings`} will change: ${names.map((n) => fields.find((f) => f.s.name === n).s.label).join("; ")}.` : "Nothing is changed.");
    };
    const show = (r) => {
      for (const f of fields) f.show(r[f.s.name]);
      was = Object.fromEntries(fields.map((f) => [f.s.name, f.value()]));
      shown = JSON.stringify(fields.map((f) => r[f.s.name]));
      say();
    };
    const c = control(may && el("div.row", {}, save), says);
    const form = el("form", { novalidate: true, onsubmit: (e) => (e.preventDefault(), store()), oninput: say, onchange: say }, ...groups.map(([title, list]) => el("fieldset.panel", {}, el("legend", {}, title), ...list.map((f) => f.node))), el("div.panel.sticky", {}, c.node));
    const store = () => {
      const body = changed();
      const back = Object.fromEntries(Object.keys(body).map((n) => [n, was[n]]));
      wrong(inputs);
      const to = (b) => ({
        run: async () => {
          try {
            return await room.save(b);
          } catch (e) {
            wrong(inputs, e);
            throw e;
          }
        },
        done: (r) => (show(r), "Saved."),
      });
      if (Object.keys(body).length) act(c.out, save, to(body).run, to(body).done, to(back));
      else put(c.out, "Nothing is changed.");
    };
    return {
      node: form,
      draw(r) {
        // What somebody else changed shows here, unless something is being typed.
        if (shown === null || (!Object.keys(changed()).length && !form.contains(document.activeElement) && shown !== JSON.stringify(fields.map((f) => r[f.s.name])))) show(r);
      },
    };
  });
