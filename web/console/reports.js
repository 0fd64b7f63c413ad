// What happened, by hour or by day, room by room.

import { download, moment } from "./desk.js";
import { api, rooms } from "./feed.js";
import { el, head, load, num, readdress, span, table } from "./parts.js";
import uPlot from "./vendor/uPlot.js";

const DAY = 86_400_000;
const SPANS = [[1, "1 day"], [7, "7 days"], [30, "30 days"], [90, "90 days"]];
const here = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";

export function page({ query }) {
  const choice = (id, list, chosen) => el("select", { id }, ...list.map(([v, w]) => el("option", { value: v, selected: String(v) === chosen }, w)));
  const room = choice("room", [["", "all rooms"], ...rooms.map((r) => [r.id, r.name || r.id])], query.get("room") || "");
  const bucket = choice("bucket", [["hour", "hour"], ["day", "day"]], query.get("by") || "hour");
  const back = choice("back", SPANS, query.get("days") || "1");
  const zones = [...new Set([here, "UTC", ...(Intl.supportedValuesOf?.("timeZone") || [])])];
  const tz = choice("tz", zones.map((z) => [z, z]), query.get("tz") || here);
  const place = el("div");
  const takes = el("div.row");
  let plot = null;
  let redraw = () => {};
  let width = 0;
  const wide = new ResizeObserver(([{ contentRect }]) => {
    if (plot && contentRect.width === width) return;
    width = contentRect.width;
    redraw();
  });
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const recolour = () => plot && redraw();
  dark.addEventListener("change", recolour);

  const asked = () => {
    const to = Date.now();
    return new URLSearchParams({ ...(room.value && { roomId: room.value }), bucket: bucket.value, from: to - Number(back.value) * DAY, to, tz: tz.value });
  };
  const again = load(place, () => {
    const q = asked();
    takes.replaceChildren(download("Download as CSV", `/reports?${q}&format=csv`, `report-by-${bucket.value}.csv`));
    return api("GET", "/reports?" + q);
  }, show);
  for (const f of [room, bucket, back, tz])
    f.addEventListener("change", () => {
      if (f === back && Number(back.value) > 7) bucket.value = "day";
      readdress("#/reports?" + new URLSearchParams({ ...(room.value && { room: room.value }), by: bucket.value, days: back.value, tz: tz.value }));
      again();
    });

  function show(a) {
    plot?.destroy();
    plot = null;
    const local = (text) => new Date(text).toLocaleString([], { timeZone: a.tz, day: "numeric", month: "short", ...(a.bucket === "hour" && { hour: "2-digit", minute: "2-digit", hour12: false }) });
    const t = table("Report", [
      { name: a.bucket === "hour" ? "Hour" : "Day", cell: (r) => Object.assign(moment(r.start), { textContent: local(r.start) }) },
      { name: "Room", cell: (r) => r.roomId },
      { name: "Joined", num: true, cell: (r) => num(r.joins) },
      { name: "Let in", num: true, cell: (r) => num(r.passes) },
      { name: "Entered", num: true, cell: (r) => num(r.entered) },
      { name: "Did not come", num: true, cell: (r) => num(r.lapsed) },
      { name: "Left", num: true, cell: (r) => num(r.left) },
      { name: "Removed", num: true, cell: (r) => num(r.removed) },
      { name: "Longest line", num: true, cell: (r) => num(r.depthMax) },
      { name: "Mean wait", num: true, cell: (r) => (r.passes ? span(r.waitAvgSec) : null) },
      { name: "Longest wait", num: true, cell: (r) => (r.passes ? span(r.waitMaxSec) : null) },
    ], "Nothing happened in this time.");
    t.fill([...a.rows].sort((x, y) => new Date(y.start) - new Date(x.start)));
    wide.disconnect();
    redraw = () => {};
    if (!a.rows.length) return t.node;
    const picture = el("div.plot", { role: "img", "aria-label": "Joined and let in over time; the table below has the same figures" });
    redraw = () => {
      plot?.destroy();
      plot = drawn(picture, a);
    };
    wide.observe(picture); // which is told at once, and whenever it is another width
    return [el("p.key", { "aria-hidden": "true" }, el("span.k-in", {}, "Joined"), el("span.k-out", {}, "Let in")), picture, t.node];
  }
  const leave = () => {
    wide.disconnect();
    dark.removeEventListener("change", recolour);
    plot?.destroy();
  };
  const label = (words, f) => el("div", {}, el("label", { for: f.id }, words), f);
  return { node: el("div", {}, head("Reports"), el("section.panel", { "aria-label": "Report" }, el("div.filters", {}, label("Room", room), label("By", bucket), label("Back", back), label("Time zone", tz), takes), place)), leave };
}

// drawn is the chart: what rooms did, summed, bucket by bucket, those in which nothing happened as well.
function drawn(place, a) {
  const sums = new Map();
  for (const r of a.rows) {
    const at = new Date(r.start) / 1000;
    const s = sums.get(at) || [0, 0];
    sums.set(at, [s[0] + r.joins, s[1] + r.passes]);
  }
  const known = [...sums.keys()].sort((x, y) => x - y);
  const step = a.bucket === "hour" ? 3600 : 86_400;
  const times = [];
  for (const at of known) {
    for (let last = times.at(-1); last !== undefined && at - last > step * 1.5; last += step) times.push(last + step);
    times.push(at);
  }
  // A chart of one bucket is read between its neighbours.
  const xs = times.length > 1 ? times : [times[0] - step, times[0], times[0] + step];
  const of = (i) => xs.map((at) => (sums.get(at) || [0, 0])[i]);
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const axis = { stroke: colour("--soft"), grid: { stroke: colour("--edge"), width: 1 }, ticks: { show: false } };
  return new uPlot({
    width: Math.max(200, place.clientWidth), height: 220, legend: { show: false }, cursor: { show: false },
    tzDate: (ts) => uPlot.tzDate(new Date(ts * 1000), a.tz),
    scales: { y: { range: (u, min, max) => [0, Math.max(1, max * 1.05)] } },
    axes: [axis, { ...axis, size: 56, values: (u, list) => list.map((v) => (Number.isInteger(v) ? num(v) : "")) }],
    series: [{}, { stroke: colour("--in"), dash: [6, 4], width: 2, points: { show: times.length < 3 } }, { stroke: colour("--outflow"), width: 2, points: { show: times.length < 3 } }],
  }, [xs, of(0), of(1)], place);
}
