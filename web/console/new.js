// A new room: three answers make a working line.

import { api, find, learn, rooms } from "./feed.js";
import { el, fail, field, put } from "./parts.js";

export function page() {
  const id = field("id", "Id", "3 to 64 of a to z, 0 to 9 and dashes. It is part of the line's address.", { pattern: "[a-z0-9]([a-z0-9\\-]{1,62})[a-z0-9]", autocomplete: "off", autocapitalize: "off", spellcheck: "false" });
  const name = field("name", "Name", "Your visitors read it on the waiting page.", { autocomplete: "off", maxlength: 200 });
  const target = field("targetUrl", "Target address", "Where visitors go when it is their turn.", { type: "url", placeholder: "https://shop.example/", autocomplete: "url" });
  const out = el("p.out", { role: "status" });
  const button = el("button.main", { type: "submit" }, "Create the room");
  const form = el(
    "form.panel",
    {
      onsubmit: async (event) => {
        event.preventDefault();
        const body = { id: id.input.value.trim(), name: name.input.value.trim(), targetUrl: target.input.value.trim(), ratePerMinute: 60 };
        for (const f of [id, name, target]) f.input.removeAttribute("aria-invalid");
        if (find(body.id)) {
          out.className = "out err";
          put(out, `There is a room ${body.id} already.`);
          return id.input.focus();
        }
        button.disabled = true;
        try {
          learn(await api("POST", "/rooms", body));
          location.hash = `#/rooms/${encodeURIComponent(body.id)}/install`;
        } catch (e) {
          fail(out, e);
          const wrong = form.elements[e.field] || [id, name, target].map((f) => f.input).find((i) => e.code?.includes(i.name === "targetUrl" ? "target" : i.name));
          wrong?.setAttribute("aria-invalid", "true");
          wrong?.focus();
          button.disabled = false;
        }
      },
    },
    el("h1", {}, rooms.length ? "New room" : "Your first line"),
    el("p", {}, "Three answers make a working line. It lets in 60 people a minute until you change that."),
    id.node,
    name.node,
    target.node,
    out,
    el("div.row", {}, button, ...(rooms.length ? [el("a", { href: "#/" }, "Back to the rooms")] : [])),
  );
  return { node: el("div.first", {}, form) };
}
