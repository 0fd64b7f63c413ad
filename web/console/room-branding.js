// How the waiting page looks, with the real page beside the fields.

import { session } from "./feed.js";
import { act, control, el, field, put, wrong } from "./parts.js";
import { roomPage } from "./room-head.js";

const FIELDS = [
  ["name", "Name", "At the head of the page. Empty: the room's name.", { maxlength: 100 }],
  ["logoUrl", "Logo", "An https address, or a path on this server.", { maxlength: 2048, inputmode: "url", spellcheck: "false" }],
  ["color", "Colour", "As #rrggbb. It has to be legible on the background, 4.5 to 1.", { maxlength: 7, spellcheck: "false", placeholder: "#1f5f57" }],
  ["background", "Background", "As #rrggbb.", { maxlength: 7, spellcheck: "false", placeholder: "#f3f3ef" }],
];

export const page = ({ id }) =>
  roomPage(id, "branding", (room) => {
    const may = session.may("operator");
    const made = Object.fromEntries(FIELDS.map(([name, label, hint, attrs]) => [name, field("b-" + name, label, hint, { type: "text", autocomplete: "off", required: false, disabled: !may, ...attrs })]));
    const inputs = Object.fromEntries(Object.entries(made).map(([n, f]) => ["branding." + n, f.input]));
    const frame = el("iframe.preview", { title: "The waiting page, as a visitor sees it" });
    const note = el("p.hint");
    const save = el("button.main", { type: "submit" }, "Save");
    const c = control(may && el("div.row", {}, save));
    const read = () => Object.fromEntries(FIELDS.map(([n]) => [n, made[n].input.value.trim()]));
    let touched = false;
    let timer = 0;
    let last = "";
    const preview = () => {
      const asked = new URLSearchParams({ ...read(), message: room.now().branding?.message || "" });
      if (String(asked) === last) return;
      last = String(asked);
      frame.src = `/api/admin${room.path}/preview?${asked}`;
      put(note, session.link ? "A share link shows no preview." : "");
    };
    const later = () => {
      touched = true;
      clearTimeout(timer);
      timer = setTimeout(preview, 300);
    };
    const store = () => {
      const b = room.now().branding || {};
      const was = Object.fromEntries(FIELDS.map(([n]) => [n, b[n] || ""]));
      const to = (next) => ({
        run: async () => {
          try {
            return await room.save({ branding: next });
          } catch (e) {
            wrong(inputs, e);
            throw e;
          }
        },
        done: () => ((touched = false), wrong(inputs), fill(), "Saved. Open pages show it at their next look."),
      });
      act(c.out, save, to(read()).run, to(read()).done, to(was));
    };
    const fill = () => {
      const b = room.now().branding || {};
      for (const [n] of FIELDS) made[n].input.value = b[n] || "";
      preview();
    };
    const form = el("form", { onsubmit: (e) => (e.preventDefault(), store()), oninput: later }, ...Object.values(made).map((f) => f.node), c.node);
    return {
      node: el("div.cols.now", {}, el("section.panel", { "aria-label": "Branding" }, form), el("section.panel", { "aria-label": "Preview" }, el("h2", {}, "Preview"), note, frame)),
      leave: () => clearTimeout(timer),
      draw() {
        if (!touched && !form.contains(document.activeElement)) fill();
      },
    };
  });
