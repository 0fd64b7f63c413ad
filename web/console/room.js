// One room now: its figures, its chart, its controls, and what happened last.

import { session } from "./feed.js";
import { alarmsOf } from "./overview.js";
import { copier, el, eta, lineOf, num, preOf, put, rateOf, since } from "./parts.js";
import { chart, rangeOf } from "./room-chart.js";
import { controls } from "./room-controls.js";
import { roomPage } from "./room-head.js";
import { lately } from "./room-lately.js";

const FACTS = ["Waiting", "In a minute", "Out a minute", "Oldest wait", "Wait if you join now", "Inside"];

export const page = ({ id, query }) =>
  roomPage(id, "", (room) => {
    const facts = {};
    const dl = el("dl.facts.live", {}, ...FACTS.map((k) => el("div", {}, el("dt", {}, k), (facts[k] = el("dd", {}, "–")))));
    const record = el("p.hint");
    const alarm = el("ul.alarms", { hidden: true });
    const may = session.may("operator");
    const acts = may ? controls(room) : null;
    const plot = chart(room, rangeOf(query), (from) => (room.now().alerts || []).map((a) => ({ at: Number(new Date(a.since ?? a.at ?? a.firedAt)), text: alarmsOf({ alerts: [a] })[0], alarm: true })).filter((m) => m.at >= from));
    const log = session.may("viewer") ? lately(room) : null;
    const line = el("div.line", {}, el("span.soft", {}, "The line:"), el("a", { href: "/w/" + encodeURIComponent(id), target: "_blank", rel: "noreferrer" }, el("code", {}, lineOf(id))), copier(lineOf(id)));
    return {
      node: el("div", {}, alarm, el("div.panel", {}, dl, record, line), el("div.cols.now", {}, acts?.node, el("div.stack", {}, plot.node, log?.node)), acts?.bar),
      acts: () => [...(acts?.acts() || []), { name: "Copy the line's address", run: () => navigator.clipboard?.writeText(lineOf(id)) }],
      leave() {
        plot.leave();
        log?.leave();
      },
      draw(r, changed) {
        put(facts["Waiting"], num(r.waiting) + (preOf(r) ? ` + ${num(preOf(r))}` : "") + (r.held ? ` (${num(r.held)} held)` : ""));
        put(facts["In a minute"], num(r.joinedLastMin));
        put(facts["Out a minute"], `${num(r.passedLastMin)} of ${num(rateOf(r))}`);
        since(facts["Oldest wait"], r.oldestWaitSec);
        put(facts["Wait if you join now"], eta(r));
        put(facts["Inside"], num(r.live) + (r.maxConcurrent ? ` of ${num(r.maxConcurrent)}` : ""));
        const judged = r.etaRecord?.judged;
        put(record, judged ? `${Math.round((r.etaRecord.withinQuarter / judged) * 100)} % of ${num(judged)} waits that were told came true to within a quarter.` : "No told wait has been judged yet.");
        const sentences = alarmsOf(r);
        alarm.hidden = !sentences.length;
        if (alarm.dataset.says !== sentences.join("\n")) {
          alarm.dataset.says = sentences.join("\n");
          alarm.replaceChildren(...sentences.map((s) => el("li.alarm", {}, s)));
        }
        acts?.draw(r);
        if (!changed || changed.has(id)) plot.draw(r);
        log?.draw(r);
      },
    };
  });
