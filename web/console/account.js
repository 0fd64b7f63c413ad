// One's own second factor.

import { once, oneAct } from "./desk.js";
import { api, session } from "./feed.js";
import { act, ask, control, copier, el, field, head, load, wrong } from "./parts.js";
import qrcode from "./vendor/qrcode.js";

// picture draws an address for a phone's camera; it is made here, so that the secret goes nowhere else.
function picture(text) {
  const code = qrcode(0, "M");
  code.addData(text);
  code.make();
  const n = code.getModuleCount();
  let d = "";
  for (let y = 0; y < n; y++) for (let x = 0; x < n; x++) if (code.isDark(y, x)) d += `M${x} ${y}h1v1h-1z`;
  const ns = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(ns, "svg");
  for (const [k, v] of Object.entries({ class: "qr", viewBox: `-4 -4 ${n + 8} ${n + 8}`, role: "img", "aria-label": "The secret as a code for an authenticator app's camera" })) svg.setAttribute(k, v);
  const path = document.createElementNS(ns, "path");
  path.setAttribute("d", d);
  svg.append(path);
  return svg;
}

export function page() {
  const place = el("div");
  const ways = el("div");
  load(place, () => api("GET", "/session"), (me) => {
    const facts = el("dl.plain", {}, ...[["Name", me.name], ["Role", me.role], ["Id", me.id]].map(([k, v]) => el("div", {}, el("dt", {}, k), el("dd", {}, v || "–"))));
    if (me.id === "admin" || !me.id) return [facts, el("p.soft", {}, "You signed in with the admin key, which belongs to nobody and has no second factor. An owner can give you a key of your own.")];
    return [facts, ways];
  });

  const begin = oneAct("Set up a second factor", () => api("POST", "/otp", {}), (a) => {
    confirm(a);
    return "Now confirm it with a code from the app.";
  }, "button.main");
  const off = el("button.bad", { type: "button" }, "Take the second factor off");
  const c = control(el("div.row", {}, off));
  off.addEventListener("click", () => ask(c.box, `${session.name} can then sign in with the key alone.`, "Take it off", () => act(c.out, off, () => api("DELETE", "/otp"), () => "Your second factor is off.")));
  const setup = el("div");
  ways.append(el("h2", {}, "Second factor"), el("p.hint", {}, "An authenticator app on your phone shows a code that changes twice a minute. With a second factor on, signing in takes your key and that code."), begin.node, setup, c.node);

  function confirm(a) {
    const code = field("otp", "Code from the app", "Six digits.", { inputmode: "numeric", autocomplete: "one-time-code", maxlength: 7 });
    const button = el("button.main", { type: "submit" }, "Turn it on");
    const on = control(el("div.row", {}, button));
    const form = el("form", { novalidate: true, onsubmit: (event) => {
      event.preventDefault();
      wrong({ otp: code.input });
      act(on.out, button, () => api("POST", "/otp", { otp: code.input.value.replace(/\s/g, "") }).catch((e) => {
        code.input.setAttribute("aria-invalid", "true");
        code.input.focus();
        throw e;
      }), () => {
        setup.replaceChildren(el("p.out", { role: "status" }, "Your second factor is on. From now on signing in asks for a code."));
        return "";
      });
    } }, code.node, on.node);
    once(setup, "Scan this with your authenticator app, or type the secret. It is shown only now.", picture(a.uri), el("div.line", {}, el("code", {}, a.secret), copier(a.secret)), form);
    setup.querySelector("section > div.row:last-child")?.remove(); // it goes when the code is right
    code.input.focus();
  }
  return { node: el("div", {}, head("Account"), el("section.panel", { "aria-label": "Account" }, place)) };
}
