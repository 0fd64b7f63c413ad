// The box in which a visitor asks to be mailed. It claims nothing that the
// server has not said: join states what is held, and so does each answer here.

const $ = (id) => document.getElementById(id);

// ready readies the box. say words a key, announce reads a sentence out; send
// posts an address, "" for none, and resolves to {status, data}. It returns what
// shows a statement of the server: an object, or null for nothing held.
export function ready(say, announce, send) {
  const head = $("mailHead");
  const offer = head.dataset.offer;
  const to = $("mailTo");
  const note = $("mailNote");
  const stop = $("mailStop");
  let busy = false;

  function show(held) {
    $("mailForm").hidden = false;
    head.textContent = held ? say("mailme.on", { email: held.emailMasked }) : offer;
    $("mailAsk").hidden = !!held;
    stop.hidden = !held;
    note.textContent = "";
    to.removeAttribute("aria-invalid");
  }

  function fail(key) {
    // A live region: it is read out by itself.
    note.textContent = say(key);
  }

  function invalid() {
    to.setAttribute("aria-invalid", "true");
    fail("mailme.invalid");
    to.focus();
  }

  async function put(email) {
    if (busy) return;
    busy = true;
    const { status, data } = await send(email).catch(() => ({}));
    busy = false;
    const focused = document.activeElement;
    if (status === 200) {
      show(data.notify);
      if (data.notify) announce(head.textContent);
      else fail("mailme.off");
    } else if (data?.code === "invalid_email") invalid();
    else fail(status === 429 ? "mailme.limit" : "mailme.failed");
    // Who stood on a button that is gone goes on where the next one is.
    if (focused && !focused.getClientRects().length) (stop.hidden ? to : stop).focus();
  }

  $("mailForm").addEventListener("submit", (event) => {
    event.preventDefault();
    const email = to.value.trim();
    if (email && to.validity.valid) put(email);
    else invalid();
  });
  stop.addEventListener("click", () => put(""));
  return show;
}
