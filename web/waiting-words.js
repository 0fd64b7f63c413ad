// How the waiting page says numbers and times, in the visitor's language. It
// knows nothing of lines and of the server, but for what the page brought along.

const $ = (id) => document.getElementById(id);
export const cfg = (window.QM_CONFIG = JSON.parse($("qm-config").textContent));
export const { words } = cfg;

// Latin digits everywhere: clocks, reference codes and the server's first paint have them too.
const locale = words.lang + "-u-nu-latn";
const plural = new Intl.PluralRules(locale);
const grouped = new Intl.NumberFormat(locale, { useGrouping: true });

export const number = (n) => grouped.format(n);
export const say = (key, args = {}) => (words[key] ?? "").replace(/\{(\w+)\}/g, (_, name) => args[name] ?? "");
export const count = (key, n) => say([n, plural.select(n)].map((form) => `${key}.${form}`).find((k) => words[k]) ?? key, { n: number(n) });

// A wait in seconds, no tighter than an estimate deserves: "about 5 minutes",
// "20 to 30 minutes". null is a wait that nobody knows. words.go says the same.
export function eta(sec, paused) {
  if (sec == null) return say(paused ? "eta.paused" : "eta.unknown");
  const min = sec / 60;
  if (min < 1) return say("eta.now");
  if (min < 1.5) return say("eta.minute");
  if (min < 9.5) return count("eta.min", Math.round(min));
  if (min < 17.5) return count("eta.min", Math.round(min / 5) * 5);
  if (min < 50) {
    const a = Math.max(5, Math.floor((min * 0.85) / 5) * 5);
    return say("eta.range", { a, b: Math.max(a + 5, Math.ceil((min * 1.15) / 5) * 5) });
  }
  if (min < 70) return say("eta.hour");
  if (min < 120) return say("eta.hourplus");
  if (min < 1440) return count("eta.hours", Math.floor(min / 60));
  return say("eta.day");
}

// A countdown: 9:58, 2:14:07, or days.
export function clock(ms) {
  const s = Math.max(0, Math.ceil(ms / 1000) || 0);
  if (s >= 172_800) return count("days", Math.floor(s / 86_400));
  const two = (n) => String(n).padStart(2, "0");
  const h = Math.floor(s / 3600);
  return (h ? `${h}:${two(Math.floor(s / 60) % 60)}` : Math.floor(s / 60)) + ":" + two(s % 60);
}

// An instant of this device's clock, in ms. A drop is less than a year ahead: the year would only take the line's room.
export function instant(ms) {
  const at = new Date(ms);
  const today = at.toDateString() === new Date().toDateString();
  return at.toLocaleString(locale, { ...(!today && { month: "short", day: "numeric" }), hour: "numeric", minute: "2-digit" });
}
