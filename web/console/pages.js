// Every page of the console, in the order of the navigation bar.
//
// path  after "#"; ":name" stands for one part of it, which the page gets by that name
// title in the browser's tab, until the page sets its own
// nav   in the navigation bar; pages without one are reached from others
// role  the least that may see it: monitor, viewer, operator or owner
// load  its module, which exports page(params) → {node, draw?(changed), leave?(), acts?()}:
//       draw is called with each frame, and gets a Set of the ids of rooms that changed, or null for all of them;
//       acts are what the palette offers on this page: [{name, run}]

export const pages = [
  { path: "/", title: "Rooms", nav: "Rooms", role: "monitor", load: () => import("./overview.js") },
  { path: "/new", title: "New room", role: "operator", load: () => import("./new.js") },
  { path: "/rooms/:id", title: "Room", role: "monitor", load: () => import("./room.js") },
  { path: "/rooms/:id/schedule", title: "Schedule", role: "viewer", load: () => import("./room-schedule.js") },
  { path: "/rooms/:id/visitors", title: "Visitors", role: "viewer", load: () => import("./room-visitors.js") },
  { path: "/rooms/:id/targeting", title: "Targeting", role: "viewer", load: () => import("./room-targeting.js") },
  { path: "/rooms/:id/branding", title: "Branding", role: "viewer", load: () => import("./room-branding.js") },
  { path: "/rooms/:id/settings", title: "Settings", role: "viewer", load: () => import("./room-settings.js") },
  { path: "/rooms/:id/journal", title: "Journal", role: "viewer", load: () => import("./room-journal.js") },
  { path: "/rooms/:id/install", title: "Install", role: "viewer", load: () => import("./room-install.js") },
  { path: "/alerts", title: "Alerts", nav: "Alerts", role: "monitor", load: () => import("./alerts.js") },
  { path: "/reports", title: "Reports", nav: "Reports", role: "monitor", load: () => import("./reports.js") },
  { path: "/audit", title: "Audit", nav: "Audit", role: "viewer", load: () => import("./audit.js") },
  { path: "/security", title: "Security", nav: "Security", role: "monitor", load: () => import("./security.js") },
  { path: "/connectors", title: "Connectors", nav: "Connectors", role: "viewer", load: () => import("./connectors.js") },
  { path: "/operators", title: "Operators", nav: "Operators", role: "owner", load: () => import("./operators.js") },
  { path: "/links", title: "Share links", nav: "Share links", role: "viewer", load: () => import("./links.js") },
  { path: "/health", title: "Health", nav: "Health", role: "monitor", load: () => import("./health.js") },
  { path: "/account", title: "Account", nav: "Account", role: "viewer", load: () => import("./account.js") },
];

// find is the page at an address such as "/rooms/demo?range=24h", and what stands in its place holders; null when there is none.
export function findPage(address) {
  const [path, query] = address.split("?", 2);
  const parts = path.split("/");
  for (const page of pages) {
    const want = page.path.split("/");
    if (want.length !== parts.length) continue;
    const params = { query: new URLSearchParams(query) };
    if (want.every((w, i) => (w[0] === ":" ? parts[i] && ((params[w.slice(1)] = named(parts[i])), true) : w === parts[i]))) return { page, params };
  }
  return null;
}

// named reads an id from an address that may be anybody's typing.
function named(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
