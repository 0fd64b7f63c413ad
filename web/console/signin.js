// Signing in: with a key, and a code where a second factor is asked for.

import { api, session } from "./feed.js";
import { el, fail } from "./parts.js";

// signInPage is {node, signIn(sentence), focus()}; done is called once a session has begun.
export function signInPage(why, done) {
  const key = el("input", { id: "key", type: "password", autocomplete: "current-password", required: true, "aria-describedby": "keyOut" });
  const otp = el("input", { id: "otp", inputmode: "numeric", autocomplete: "one-time-code", maxlength: 12, "aria-describedby": "keyOut" });
  const second = el("div.field", { hidden: true }, el("label", { for: "otp" }, "One-time code"), otp);
  const out = el("p.out", { id: "keyOut", role: "status" }, why || "");
  const button = el("button.main", { type: "submit" }, "Sign in");
  const say = (sentence) => {
    fail(out, { message: sentence });
    button.disabled = false;
  };
  const form = el(
    "form.panel",
    {
      onsubmit: async (event) => {
        event.preventDefault();
        button.disabled = true;
        try {
          const me = await api("POST", "/session", { key: key.value.trim(), ...(!second.hidden && { otp: otp.value.replace(/\s/g, "") }) });
          session.begin(me);
          done();
        } catch (e) {
          const first = e.code === "otp_required" && second.hidden;
          if (first || e.code === "invalid_otp") second.hidden = false;
          if (first) {
            out.className = "out";
            out.textContent = "Now the code that your authenticator app shows.";
            button.disabled = false;
          } else say(e.message);
          const wrong = second.hidden ? key : otp;
          if (!first) wrong.setAttribute("aria-invalid", "true");
          wrong.focus();
          wrong.select();
        }
      },
    },
    el("h1", {}, "Sign in"),
    el("p", {}, "With your own key, or with the admin key that this server was started with."),
    el("div.field", {}, el("label", { for: "key" }, "Key"), key),
    second,
    out,
    el("div.row", {}, button),
  );
  return { node: el("div.first", {}, form), signIn: say, focus: () => key.focus() };
}
