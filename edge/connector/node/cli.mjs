#!/usr/bin/env node
// The install check: asks the Queue Manager server whether this site's connector is set up, and says what to mend.
import { parseArgs } from 'node:util';
import { name, verify, version } from './verify.mjs';

const USAGE = `usage: qm-connector verify --room ROOM --base URL [--url PAGE] [--timeout MS]

  --room     the waiting room's id
  --base     the address of the Queue Manager server, such as https://queue.example.com
  --url      a page that the room protects; the check then says whether the room's rules name it
  --timeout  how long to wait for the server, in milliseconds (10000)

The public API key is read from QM_PUBLIC_KEY, so that it is in no list of processes.
Exit status: 0 all is well, 1 a check failed or the server could not be asked, 2 wrong usage.`;

function usage(problem) {
  console.error(`qm-connector: ${problem}\n\n${USAGE}`);
  return 2;
}

async function main(argv) {
  let args;
  try {
    args = parseArgs({
      args: argv,
      allowPositionals: true,
      options: {
        room: { type: 'string' },
        base: { type: 'string' },
        url: { type: 'string' },
        timeout: { type: 'string', default: '10000' },
        help: { type: 'boolean', short: 'h' },
        version: { type: 'boolean' },
      },
    });
  } catch (e) {
    return usage(e.message);
  }
  const { values, positionals } = args;
  if (values.help) {
    console.log(USAGE);
    return 0;
  }
  if (values.version) {
    console.log(`${name} ${version}`);
    return 0;
  }
  if (positionals.length !== 1 || positionals[0] !== 'verify') return usage('the one command is verify');
  if (!values.room) return usage('--room is missing');
  if (!values.base) return usage('--base is missing');
  if (!(Number(values.timeout) > 0)) return usage('--timeout is no number of milliseconds');

  let report;
  try {
    report = await verify({
      base: values.base,
      room: values.room,
      url: values.url,
      key: process.env.QM_PUBLIC_KEY,
      timeoutMs: Number(values.timeout),
    });
  } catch (e) {
    console.log(`fail  ${e.message}`);
    return 1;
  }
  for (const check of report.checks) {
    console.log(`${check.status.padEnd(4)}  ${check.title}`);
    for (const more of [check.detail, check.fix]) if (more) console.log(`      ${more}`);
  }
  console.log(report.ok ? 'The connector is set up.' : 'Not ready: mend what failed and run this again.');
  return report.ok ? 0 : 1;
}

process.exitCode = await main(process.argv.slice(2));
