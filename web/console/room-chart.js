// Depth as an area and flow as two lines over one time axis, marked where an
// operator acted or an alarm began; the same figures as a table.

import { api, serverAhead, session } from "./feed.js";
import { el, fail, full24, num, people, put, readdress, when } from "./parts.js";
import uPlot from "./vendor/uPlot.js";

const RANGES = [["1h", "1 hour"], ["24h", "24 hours"], ["7d", "7 days"]];
const MS = { "1h": 3.6e6, "24h": 8.64e7, "7d": 6.048e8 };
const RENEW = 60_000; // how often what lies behind is asked for anew, ms

// What an operator's act was, in few words; null: not worth a mark.
export function said(e) {
  const after = e.after || {};
  switch (e.kind) {
    case "state":
      return `state ${after.state ?? "changed"}`;
    case "configure": {
      const names = Object.keys(after);
      return after.ratePerMinute !== undefined && names.length === 1 ? `rate ${num(e.before?.ratePerMinute)} → ${num(after.ratePerMinute)}` : after.branding && names.length === 1 ? "message or branding" : `settings: ${names.join(", ") || "changed"}`;
    }
    case "schedule":
      return after.opensAt ? `opening set` : "opening cancelled";
    case "pass":
      return "let people in";
    case "purge":
    case "eject":
    case "create":
    case "draw":
    case "close":
      return e.kind;
  }
  return e.kind;
}

const instant = (at, step) => (step >= 86_400 ? new Date(at).toLocaleDateString([], { day: "numeric", month: "short" }) : new Date(at).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hour12: false }));

// chart makes it for a room: {node, draw(r), leave()}.
export function chart(room, range, alarms) {
  const ranges = RANGES.map(([v, words]) => el("button", { type: "button", "aria-pressed": String(v === range), onclick: () => pick(v) }, words));
  const place = el("div.plot", { role: "img" });
  const out = el("p.out", { role: "status" });
  const key = el("p.key", { "aria-hidden": "true" }, el("span.k-depth", {}, "Waiting"), el("span.k-in", {}, "In a minute"), el("span.k-out", {}, "Out a minute"));
  const readout = el("p.readout");
  const list = el("ol.marks");
  const table = el("details.more", {}, el("summary", {}, "The same as a table"));
  const node = el("section.panel.chart", { "aria-label": "Depth and flow" }, el("div.charthead", {}, el("h2", {}, "Depth and flow"), el("div.seg.small", { role: "group", "aria-label": "Range" }, ...ranges)), key, place, readout, out, list, table);

  let data = [[], [], [], []];
  let marks = [];
  let plot = null;
  let minutes = 1; // that a point stands for
  let gone = false;
  let timer = 0;
  let asked = 0;

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const build = () => {
    plot?.destroy();
    const soft = colour("--soft");
    const axis = { stroke: soft, grid: { stroke: colour("--edge"), width: 1 }, ticks: { stroke: colour("--edge"), width: 1 }, font: "12px system-ui, sans-serif" };
    const whole = (u, values) => values.map((v) => (Number.isInteger(v) ? num(v) : ""));
    plot = new uPlot(
      {
        width: Math.max(200, place.clientWidth),
        height: place.clientWidth < 500 ? 200 : 280,
        legend: { show: false },
        cursor: { y: false, points: { size: 7 } },
        scales: { x: { time: true, range: () => [(Date.now() + serverAhead - MS[range]) / 1000, (Date.now() + serverAhead) / 1000] }, depth: { range: (u, min, max) => [0, Math.max(10, (max || 0) * 1.1)] }, flow: { range: (u, min, max) => [0, Math.max(10, (max || 0) * 1.1)] } },
        series: [
          {},
          { label: "Waiting", scale: "depth", stroke: colour("--accent"), width: 1.5, fill: colour("--accent") + "2e", points: { show: false } },
          { label: "In", scale: "flow", stroke: colour("--in"), width: 1.5, dash: [6, 3], points: { show: false } },
          { label: "Out", scale: "flow", stroke: colour("--outflow"), width: 2, points: { show: false } },
        ],
        axes: [
          { ...axis, values: (u, splits, i, space, step) => splits.map((v) => instant(v * 1000, step)), space: 60 },
          { ...axis, scale: "depth", values: whole, size: 56 },
          { ...axis, scale: "flow", side: 1, grid: { show: false }, values: whole, size: 56 },
        ],
        hooks: { draw: [drawMarks], setCursor: [(u) => tell(u.cursor.idx)] },
      },
      data,
      place,
    );
  };
  const drawMarks = (u) => {
    const { ctx } = u;
    ctx.save();
    ctx.font = `${12 * devicePixelRatio}px system-ui, sans-serif`;
    ctx.textAlign = "center";
    marks.forEach((m, i) => {
      const x = u.valToPos(m.at / 1000, "x", true);
      if (x < u.bbox.left || x > u.bbox.left + u.bbox.width) return;
      ctx.strokeStyle = ctx.fillStyle = colour(m.alarm ? "--bad" : "--ink");
      ctx.setLineDash(m.alarm ? [] : [2, 3]);
      ctx.lineWidth = devicePixelRatio;
      ctx.beginPath();
      ctx.moveTo(x, u.bbox.top + 16 * devicePixelRatio);
      ctx.lineTo(x, u.bbox.top + u.bbox.height);
      ctx.stroke();
      ctx.fillText(String(i + 1), x, u.bbox.top + 12 * devicePixelRatio);
    });
    ctx.restore();
  };
  const tell = (i) => {
    const at = i == null ? null : data[0][i];
    put(readout, at == null ? "" : `${full24(at * 1000)}: ${num(data[1][i])} waiting, ${num(data[2][i])} in and ${num(data[3][i])} out a minute`);
  };

  // Between two askings the newest point follows the frames.
  const draw = (r) => {
    if (!data[0].length || r.waiting == null) return;
    const at = Math.floor((Date.now() + serverAhead) / 1000);
    const depth = (r.waiting || 0) + (r.held || 0) + (r.preQueue || 0);
    const last = data[0].length - 1;
    const live = [at, depth, r.joinedLastMin ?? null, r.passedLastMin ?? null];
    if (data.live) data.forEach((s, i) => (s[last] = live[i]));
    else data.forEach((s, i) => s.push(live[i]));
    data.live = true;
    plot?.setData(data);
    summary();
  };
  const summary = () => {
    const depths = data[1].filter((v) => v != null);
    const most = depths.length ? Math.max(...depths) : null;
    place.setAttribute("aria-label", most == null ? "Nothing is known of this time yet." : `Depth and flow of the last ${RANGES.find((x) => x[0] === range)[1]}: ${people(depths.at(-1))} waiting now, at most ${num(most)}.`);
  };
  const fillTable = () => {
    if (!table.open) return;
    const rows = data[0].map((at, i) => [at, data[1][i], data[2][i], data[3][i]]).filter((x) => x[1] != null).reverse();
    const body = el("tbody", {}, ...rows.map(([at, depth, joins, passes]) => el("tr", {}, el("th", { scope: "row" }, full24(at * 1000)), el("td.num", {}, num(depth)), el("td.num", {}, num(joins)), el("td.num", {}, num(passes)))));
    const box = el("div.scroll.tall", { tabindex: 0, role: "region", "aria-label": "Depth and flow as a table" }, el("table", {}, el("caption.sr", {}, "Depth and flow, newest first"), el("thead", {}, el("tr", {}, ...["Time", "Waiting", "In a minute", "Out a minute"].map((h, i) => el(i ? "th.num" : "th", { scope: "col" }, h)))), body));
    table.querySelector(".scroll")?.remove();
    table.append(box);
  };
  table.addEventListener("toggle", fillTable);

  async function ask() {
    clearTimeout(timer);
    const mine = ++asked;
    try {
      const answer = await api("GET", `/metrics?roomId=${encodeURIComponent(room.id)}&range=${range}`);
      if (gone || mine !== asked) return;
      minutes = answer.stepSec / 60;
      const a_minute = (v) => (v == null ? null : Math.round((v / minutes) * 10) / 10);
      const known = answer.points.filter((p) => p.at <= answer.now);
      // The minute that is not over yet says too little of flow: the frames say it.
      known.pop();
      data = [known.map((p) => p.at / 1000), known.map((p) => p.depth), known.map((p) => a_minute(p.joins)), known.map((p) => a_minute(p.passes))];
      put(out, "");
      await annotate();
      if (gone || mine !== asked) return;
      build();
      draw(room.now());
      summary();
      fillTable();
    } catch (e) {
      fail(out, e);
    }
    if (!gone && mine === asked) timer = setTimeout(ask, RENEW);
  }
  async function annotate() {
    const since = Date.now() + serverAhead - MS[range];
    const began = alarms(since);
    let acts = [];
    if (session.may("viewer")) {
      try {
        acts = (await api("GET", `/audit?room=${encodeURIComponent(room.id)}&since=${Math.round(since)}&limit=100`)).entries || [];
      } catch {} // the chart holds without its marks
    }
    marks = [...acts.map((e) => ({ at: Date.parse(e.at), text: said(e), by: e.name || e.actor })), ...began].filter((m) => m.text).sort((a, b) => a.at - b.at).slice(-20);
    list.replaceChildren(...marks.map((m) => el("li", { class: m.alarm && "alarm" }, when(m.at), ` ${m.text}`, m.by ? el("span.soft", {}, ` by ${m.by}`) : "")));
    list.hidden = !marks.length;
  }
  const pick = (v) => {
    range = v;
    ranges.forEach((b, i) => b.setAttribute("aria-pressed", String(RANGES[i][0] === v)));
    readdress(`${room.base}?range=${v}`);
    ask();
  };
  const resized = new ResizeObserver(() => plot && place.clientWidth && plot.setSize({ width: place.clientWidth, height: plot.height }));
  resized.observe(place);
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  const repaint = () => plot && build();
  scheme.addEventListener("change", repaint);
  timer = setTimeout(ask, 0);
  return {
    node,
    draw,
    again: ask,
    leave() {
      gone = true;
      clearTimeout(timer);
      resized.disconnect();
      scheme.removeEventListener("change", repaint);
      plot?.destroy();
    },
  };
}
export const rangeOf = (query) => (MS[query?.get("range")] ? query.get("range") : "1h");
