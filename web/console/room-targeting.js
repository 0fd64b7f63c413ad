// Which pages of the site queue: the rules, what each has decided, and a dry run.

import { api, session } from "./feed.js";
import { act, control, el, fail, num, poll, put, table, when, wrong } from "./parts.js";
import { roomPage } from "./room-head.js";

const POLL = 5000;

export const page = ({ id }) =>
  roomPage(id, "targeting", (room) => {
    const rules = table(
      "Rules",
      [
        { name: "Rule", cell: (r) => el("code", {}, r.pattern) },
        { name: "What it does", cell: (r) => (r.action === "queue" ? "queues" : "lets through") },
        { name: "Hits", num: true, cell: (r) => num(r.matchCount) },
        { name: "Last hit", cell: (r) => (r.lastMatchedAt ? when(r.lastMatchedAt) : "never: does the room point at the right pages?") },
      ],
      "No rules: every page that carries the tag queues.",
    );
    const counts = el("p.hint");
    const out = el("p.out", { role: "status" });

    const url = el("input", { id: "dry", type: "text", placeholder: "https://shop.example/sale?item=1", autocomplete: "off", spellcheck: "false", required: true });
    const verdict = el("p.out", { role: "status" });
    const dry = async () => {
      try {
        const { dryRun: d } = await api("GET", `${room.path}/targeting?url=${encodeURIComponent(url.value)}`);
        verdict.className = "out";
        verdict.replaceChildren(d ? `${d.action === "queue" ? "This page queues" : "This page is let through"}${d.rule ? ", by the rule " : d.scope === "unknown" ? ": the address cannot be read" : ", as no rule names it"}` : "–", d?.rule ? el("code", {}, d.rule) : "", ".");
      } catch (e) {
        fail(verdict, e);
      }
    };

    const edit = el("textarea", { id: "patterns", rows: 6, spellcheck: "false", "aria-describedby": "patternsHint", disabled: !session.may("operator") });
    let touched = false;
    edit.addEventListener("input", () => (touched = true));
    const save = el("button.main", { type: "submit" }, "Save the rules");
    const list = (text) => text.split("\n").map((l) => l.trim()).filter(Boolean);
    const c = control(
      el("form", { onsubmit: (e) => (e.preventDefault(), store()) }, el("div.field", {}, el("label", { for: "patterns" }, "Rules, one a line"), edit, el("p.hint", { id: "patternsHint" }, "/path, *part* or https://host/path; ! before one makes it an exception, and exceptions always win. At most 25.")), session.may("operator") && el("div.row", {}, save)),
    );
    const store = async () => {
      const was = room.now().urlPatterns || [];
      const to = (next) => ({
        run: () =>
          room.save({ urlPatterns: next }).catch((e) => {
            wrong({ urlPatterns: edit }, e);
            throw e;
          }),
        done: () => (wrong({ urlPatterns: edit }), (touched = false), asking.now(), next.length ? `${num(next.length)} rules hold.` : "No rules: every page with the tag queues."),
      });
      const next = list(edit.value);
      await act(c.out, save, to(next).run, to(next).done, to(was));
    };

    const asking = poll(out, POLL, async () => {
      const t = await api("GET", `${room.path}/targeting`);
      return () => {
        rules.fill(t.rules);
        put(counts, t.scoped ? `${num(t.unmatchedCount)} checks met no rule, ${num(t.noUrlCount)} came without an address, ${num(t.unreadableUrlCount)} with one that cannot be read.` : "");
      };
    });
    return {
      node: el(
        "div",
        {},
        el("section.panel", { "aria-label": "What the rules did" }, el("h2", {}, "What the rules did"), rules.node, counts, out),
        el("section.panel", { "aria-label": "Dry run" }, el("h2", {}, "Dry run"), el("form.row", { onsubmit: (e) => (e.preventDefault(), dry()) }, el("div.grow", {}, el("label", { for: "dry" }, "Address of a page"), url), el("button", { type: "submit" }, "Try")), verdict),
        el("section.panel", { "aria-label": "Change the rules" }, c.node),
      ),
      leave: asking.end,
      draw(r) {
        if (!touched && document.activeElement !== edit && r.urlPatterns) edit.value = r.urlPatterns.join("\n");
      },
    };
  });
