// A site behind the Node connector: node site.mjs http|express CONNECTOR. CONNECTOR is the folder of the installed package.
//
// The connector's options are in QM_OPTIONS or, so that one process can run many cases, in the header X-Test-Options of a request. The
// site answers with what has reached it. It prints where it listens and what the connector logs.
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [kind, folder] = process.argv.slice(2);
const { createConnector } = await import(pathToFileURL(`${folder}/qm-connector.mjs`));
const made = new Map();

function connectorOf(req) {
  const options = req.headers['x-test-options'] ?? process.env.QM_OPTIONS;
  if (!made.has(options)) made.set(options, createConnector({ ...JSON.parse(options), log: (line) => console.log(line) }));
  return made.get(options);
}

function site(req, res) {
  const body = JSON.stringify({ reached: true, method: req.method, target: req.originalUrl ?? req.url, cookie: req.headers.cookie ?? '' });
  res.setHeader('Content-Type', 'application/json');
  res.appendHeader?.('Set-Cookie', 'site=1');
  res.end(body);
}

let server;
if (kind === 'express') {
  const express = createRequire(process.env.QM_EXPRESS + '/')('express');
  const app = express();
  app.use((req, res, next) => connectorOf(req).express()(req, res, next));
  app.use(site);
  server = createServer(app);
} else {
  server = createServer(async (req, res) => {
    if (await connectorOf(req).handle(req, res)) site(req, res);
  });
}
server.listen(0, '127.0.0.1', () => console.log(`ready http://127.0.0.1:${server.address().port}`));
