// What the organisation's pages share: instants with their day, figures that
// renew themselves, and files to take away.

import { lines, session } from "./feed.js";
import { act, control, el, fail, full24 } from "./parts.js";

const RENEW = 15_000; // how often a page that is looked at asks anew, ms

// moment is an instant with its day, absolute on hover and focus; null where there is none.
export function moment(at) {
  if (at == null || at === "" || Number.isNaN(Number(new Date(at)))) return null;
  const t = new Date(at);
  const year = t.getFullYear() === new Date().getFullYear() ? {} : { year: "numeric" };
  return el("time", { datetime: t.toISOString(), title: full24(t), tabindex: 0 }, t.toLocaleString([], { day: "numeric", month: "short", ...year, hour: "2-digit", minute: "2-digit", hour12: false }));
}

// renewing asks anew while the page is looked at, and not while somebody reads on in what it shows. It answers how to stop.
export function renewing(again, place) {
  const timer = setInterval(() => document.hidden || place.contains(document.activeElement) || place.querySelector("details[open], .ask") || again(), RENEW);
  return () => clearInterval(timer);
}

// download is a link to a file of the admin API. A share link has no cookie that a plain link could carry: there the file is fetched.
export function download(words, path, name) {
  const out = el("span.out", { role: "status" });
  const link = el("a.button", { href: "/api/admin" + path, download: name }, words);
  link.addEventListener("click", async (event) => {
    if (!session.link) return;
    event.preventDefault();
    try {
      let text = "";
      for await (const line of lines(path)) text += line + "\n";
      const url = URL.createObjectURL(new Blob([text]));
      el("a", { href: url, download: name }).click();
      URL.revokeObjectURL(url);
    } catch (e) {
      fail(out, e);
    }
  });
  return el("span", {}, link, out);
}

// oneAct is a button with the place where its answer stands.
export function oneAct(words, run, done, cls = "button") {
  const button = el(cls, { type: "button" }, words);
  const c = control(el("div.row", {}, button));
  button.addEventListener("click", () => act(c.out, button, run, done));
  return { ...c, button };
}

// once shows what the server tells only this one time.
export function once(place, sentence, ...nodes) {
  const done = el("button", { type: "button", onclick: () => place.replaceChildren() }, "I have kept it");
  place.replaceChildren(el("section.panel.once", { "aria-label": "Shown once" }, el("p", {}, el("b", {}, sentence)), ...nodes, el("div.row", {}, done)));
  place.querySelector("button")?.focus();
}

// saidOf puts a value of the audit trail or of the configuration in a line of text.
export function saidOf(value) {
  if (value === null || value === undefined || value === "") return "nothing";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (Array.isArray(value)) return value.map(saidOf).join(", ") || "nothing";
  if (typeof value === "object") return Object.entries(value).map(([k, v]) => `${k} ${saidOf(v)}`).join("; ") || "nothing";
  return String(value);
}
