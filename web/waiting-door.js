// What the page says of its browser at the door of a room with protection, and
// how it earns its way in. Loaded only where the server asked for it.

import { cfg } from "./waiting-words.js";

// marks names what speaks for a program behind the page, as package
// access/score knows it. What cannot be asked says nothing.
function marks() {
  const agent = navigator.userAgent;
  const chrome = /Chrome\//.test(agent) && !/; wv\)/.test(agent);
  const phone = /Mobile|Android/.test(agent);
  const found = [];
  if (navigator.webdriver) found.push("webdriver");
  if (/Headless/.test(agent + JSON.stringify(navigator.userAgentData?.brands ?? "")) || navigator.languages?.length === 0) found.push("headless");
  if (!window.CSS?.supports || !window.crypto?.getRandomValues || (chrome && (!window.chrome || (!phone && navigator.plugins?.length === 0)))) found.push("missing_api");
  return found.join(",");
}

// open adds to knock what join is told beside the place. It returns what earns a
// way in: that adds the proof of work about what the server asks, found beside
// the page, so that the page stays alive.
export function open(knock) {
  knock.marks = marks();
  return ({ stamp, parts, bits }) =>
    new Promise((resolve, reject) => {
      const worker = new Worker(cfg.workUrl);
      worker.onerror = reject;
      worker.onmessage = ({ data }) => {
        worker.terminate();
        resolve(Object.assign(knock, { stamp, work: data }));
      };
      worker.postMessage({ stamp, parts, bits });
    });
}
