// The page behind the demo room's line. It takes the hand-over code out of
// the address bar, so that a copied address lets nobody in, and gives the pass
// back before the visitor waits again.
const here = new URL(location.href);
for (const name of [...here.searchParams.keys()]) if (name.startsWith("qm_")) here.searchParams.delete(name);
if (here.href !== location.href) history.replaceState(null, "", here);

const again = document.getElementById("again");
again.addEventListener("click", async (event) => {
  event.preventDefault();
  const { room, leave } = again.dataset;
  try {
    localStorage.removeItem("qm:" + room);
  } catch {} // storage may be forbidden; the cookie decides then
  try {
    await fetch(leave, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ roomId: room }),
      signal: AbortSignal.timeout(3000),
    });
  } catch {} // the line itself says what is wrong
  location.assign(again.href);
});
