// What the page says of its browser at the door of a room with protection, and
// how it earns its way in. Loaded only where the server asked for it.

// marks names what speaks for a program behind the page, as package
// access/score knows it. What cannot be asked says nothing.
export function marks() {
  const agent = navigator.userAgent;
  const chrome = /Chrome\//.test(agent) && !/; wv\)/.test(agent);
  const phone = /Mobile|Android/.test(agent);
  const found = [];
  if (navigator.webdriver) found.push("webdriver");
  if (/Headless/.test(agent + JSON.stringify(navigator.userAgentData?.brands ?? "")) || navigator.languages?.length === 0) found.push("headless");
  if (!window.CSS?.supports || !window.crypto?.getRandomValues || (chrome && (!window.chrome || (!phone && navigator.plugins?.length === 0)))) found.push("missing_api");
  return found.join(",");
}

// work finds the proof of work about a stamp, beside the page, so that the page
// stays alive. It resolves to the text that the server takes.
export function work(script, { stamp, parts, bits }) {
  return new Promise((resolve, reject) => {
    const worker = new Worker(script);
    const over = (then) => (event) => {
      worker.terminate();
      then(event.data ?? event);
    };
    worker.onmessage = over(resolve);
    worker.onerror = over(reject);
    worker.postMessage({ stamp, parts, bits });
  });
}
