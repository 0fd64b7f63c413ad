// The box in which a visitor asks to be mailed. It claims nothing that the
// server has not said: join states what is held, and so does each answer here.

const $ = (id) => document.getElementById(id);

// ready fetches the box in a language and readies it. announce reads a sentence
// out; send posts an address, "" for none, and resolves to {status, data}. It
// resolves to what shows a statement of the server: an object, or null for
// nothing held.
export async function ready(url, announce, send) {
  const answer = await fetch(url, { cache: "no-store" });
  if (!answer.ok) throw new Error(String(answer.status));
  const inside = document.createElement("div");
  inside.innerHTML = await answer.text();
  $("mailme").append(inside);
  const form = $("mailForm");
  const head = $("mailHead");
  const to = $("mailTo");
  const note = $("mailNote");
  const stop = $("mailStop");
  let busy = false;

  function show(held) {
    head.textContent = held ? form.dataset.on.replace("{email}", held.emailMasked) : form.dataset.offer;
    $("mailAsk").hidden = !!held;
    stop.hidden = !held;
    note.textContent = "";
    to.removeAttribute("aria-invalid");
  }

  // The note is a live region: it is read out by itself.
  function tell(word) {
    note.textContent = form.dataset[word];
  }

  function invalid() {
    to.setAttribute("aria-invalid", "true");
    tell("invalid");
    to.focus();
  }

  async function put(email) {
    if (busy) return;
    busy = true;
    const { status, data } = await send(email).catch(() => ({}));
    busy = false;
    if (status === 200) {
      const inside = form.contains(document.activeElement);
      show(data.notify);
      if (data.notify) announce(head.textContent);
      else tell("off");
      // Who stood on a button that is gone goes on where the next one is.
      if (inside) (data.notify ? stop : to).focus();
    } else if (data?.code === "invalid_email") invalid();
    else tell(status === 429 ? "limit" : "failed");
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const email = to.value.trim();
    if (email && to.validity.valid) put(email);
    else invalid();
  });
  stop.addEventListener("click", () => put(""));
  return show;
}
