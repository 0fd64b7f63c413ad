// From a room to a site that queues: the line's address, the tag to copy, the
// connectors, and which of them were seen.

import { api, publicly } from "./feed.js";
import { copier, el, fail, full24, lineOf, load, num, poll, put, table, when } from "./parts.js";
import { roomPage } from "./room-head.js";

const POLL = 3000;

export const page = ({ id }) =>
  roomPage(id, "install", (room) => {
    const tag = `<script src="${location.origin}/snippet/qm.js" data-room="${id}"></script>`;
    const seen = table(
      "Connectors that were seen",
      [
        { name: "Connector", cell: (c) => `${c.connector} ${c.version || ""}` },
        { name: "Site", cell: (c) => c.origin || "–" },
        { name: "State", cell: (c) => el(c.ok ? "span" : "span.err", {}, c.ok ? "works" : `to be mended: ${c.failing.join(", ")}`) },
        { name: "Newest version", cell: (c) => (c.newest && c.version && c.newest !== c.version ? `${c.newest}: renew it` : "yes") },
        { name: "Last seen", cell: (c) => when(c.lastSeenAt) },
        { name: "Times", num: true, cell: (c) => num(c.count) },
      ],
      "None has asked this process yet.",
    );
    const heard = el("p.waits", { role: "status" }, "Waiting to hear of a site.");
    const out = el("p.out");

    const site = el("input", { id: "site", type: "url", required: true, placeholder: "https://shop.example/", autocomplete: "url" });
    const checks = el("ul.checks");
    const verdict = el("p.out", { role: "status" });
    const check = async () => {
      verdict.className = "out";
      put(verdict, "Looking");
      try {
        const r = await publicly(`/verify?roomId=${encodeURIComponent(id)}&url=${encodeURIComponent(site.value)}`);
        put(verdict, r.ok ? "The room is ready for this page." : "Something is to be mended first.");
        checks.replaceChildren(...r.checks.map((c) => el("li", { "data-s": c.status }, el("b", {}, { pass: "good", fail: "wrong", warn: "take care", info: "note" }[c.status] || c.status), ` ${c.title}`, c.detail ? el("span.soft", {}, ` ${c.detail}`) : "", c.fix ? el("div", {}, c.fix) : "")));
        asking.now();
      } catch (e) {
        fail(verdict, e);
      }
    };
    const list = el("div");
    load(
      list,
      () => publicly(`/connectors?roomId=${encodeURIComponent(id)}`),
      ({ connectors }) => connectors.map((c) => el("details.more", {}, el("summary", {}, `${c.title} ${c.version}`), ...["install", "verify", "upgrade"].map((k) => el("div.cmd", {}, el("p.legend", {}, { install: "Install", verify: "Check", upgrade: "Renew" }[k]), el("div.line", {}, el("code", {}, c[k]), copier(c[k])))), el("p.hint", {}, "SHA-256 ", el("code", {}, c.sha256)))),
    );

    const asking = poll(out, POLL, async () => {
      const { connectors, since } = await api("GET", `${room.path}/connectors`);
      return () => {
        seen.fill(connectors);
        const last = connectors[0];
        heard.replaceChildren(last ? `${last.connector} at ${last.origin || "an unnamed site"} was seen ` : `Waiting to hear of a site. Nothing was heard since ${full24(since)}.`, last ? when(last.lastSeenAt) : "");
        heard.classList.toggle("done", Boolean(last));
      };
    });
    return {
      node: el(
        "div",
        {},
        el(
          "section.panel",
          { "aria-label": "Two lines" },
          el("h2", {}, "A working line, and a working tag"),
          el("ol.steps", {},
            el("li", {}, "The line is there. Send people to it, or open it yourself:", el("div.line", {}, el("a", { href: "/w/" + encodeURIComponent(id), target: "_blank", rel: "noreferrer" }, el("code", {}, lineOf(id))), copier(lineOf(id)))),
            el("li", {}, "Put this first into the head of each page that should queue:", el("div.line", {}, el("code", {}, tag), copier(tag))),
            el("li", {}, "Say which page, and see whether the room takes it:", el("form.row", { onsubmit: (e) => (e.preventDefault(), check()) }, el("div.grow", {}, el("label", { for: "site" }, "Address of the page"), site), el("button.main", { type: "submit" }, "Check")), verdict, checks),
          ),
          heard,
        ),
        el("section.panel", { "aria-label": "Seen" }, el("h2", {}, "Connectors that were seen"), seen.node, out),
        el("section.panel", { "aria-label": "Connectors" }, el("h2", {}, "On the server or at the edge"), el("p.hint", {}, "A tag can be blocked in the browser; a connector on the server cannot."), list),
      ),
      leave: asking.end,
    };
  });
