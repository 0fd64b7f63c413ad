// The palette: every room, page and act by typing a part of its name; and what
// the keys do.

import { rooms, session } from "./feed.js";
import { el } from "./parts.js";
import { pages } from "./pages.js";

const KEYS = [
  ["k or Ctrl+K", "go to a room or page, or act"],
  ["?", "show these keys"],
  ["/", "filter the list that is shown"],
  ["Tab, Shift+Tab", "from one control to the next, or back"],
  ["Up, Down, Home, End", "through a list such as the journal"],
  ["Enter", "apply what is in a field"],
  ["Esc", "close what is open"],
];
const SHOWN = 12;

// open shows the palette, or with help the keys. acts are those of the page that is shown: [{name, run}].
export function open(help, acts) {
  const from = document.activeElement;
  const dialog = el("dialog.palette", { "aria-label": help ? "Keys" : "Go to" });
  dialog.addEventListener("close", () => (dialog.remove(), from?.isConnected && from.focus()));
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  dialog.append(help ? keys(dialog) : choice(dialog, acts));
  document.body.append(dialog);
  dialog.showModal();
}

function keys(dialog) {
  return el("div", {}, el("h2", {}, "Keys"), el("dl.keys", {}, ...KEYS.map(([k, what]) => el("div", {}, el("dt", {}, el("kbd", {}, k)), el("dd", {}, what)))), el("div.row", {}, el("button", { type: "button", onclick: () => dialog.close() }, "Close")));
}

function choice(dialog, acts) {
  const go = (hash) => () => (location.hash = hash);
  const all = [
    ...acts.map((a) => ({ kind: "act", ...a })),
    ...pages.filter((p) => (p.nav || p.path === "/new") && session.may(p.role)).map((p) => ({ kind: "page", name: p.nav || p.title, run: go(p.path) })),
    ...rooms.map((r) => ({ kind: "room", name: r.name || r.id, also: r.id, run: go("/rooms/" + encodeURIComponent(r.id)) })),
  ];
  const input = el("input", { type: "text", role: "combobox", "aria-label": "A room, a page or an act", "aria-expanded": "true", "aria-controls": "found", "aria-autocomplete": "list", autocomplete: "off", spellcheck: "false", placeholder: "A room, a page or an act" });
  const list = el("ul", { id: "found", role: "listbox", "aria-label": "Found" });
  const count = el("p.sr", { role: "status" });
  let found = [];
  let at = 0;
  const stand = (i) => {
    at = Math.max(0, Math.min(i, found.length - 1));
    [...list.children].forEach((li, j) => li.setAttribute("aria-selected", String(j === at)));
    if (list.children[at]) {
      input.setAttribute("aria-activedescendant", list.children[at].id);
      list.children[at].scrollIntoView({ block: "nearest" });
    } else input.removeAttribute("aria-activedescendant");
  };
  const take = (i) => {
    const one = found[i];
    if (!one) return;
    dialog.close();
    one.run();
  };
  const look = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    found = all.filter((one) => words.every((w) => `${one.name} ${one.also || ""} ${one.kind}`.toLowerCase().includes(w))).slice(0, SHOWN);
    list.replaceChildren(...found.map((one, i) => el("li", { id: "found" + i, role: "option", onclick: () => take(i) }, el("span", {}, one.name), el("small", {}, one.also && one.also !== one.name ? `${one.kind} ${one.also}` : one.kind))));
    count.textContent = found.length ? `${found.length} found` : "Nothing found";
    stand(0);
  };
  input.addEventListener("input", look);
  input.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) event.preventDefault(), stand(at + step);
    if (event.key === "Enter") event.preventDefault(), take(at);
  });
  look();
  return el("div", {}, input, list, count);
}
