import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { readAdminToken } from '../src/daemon/local-client.ts';
import { dialects } from './support/stores/dialects.ts';
import { tags } from '../src/http/route.ts';
import { routesOf } from '../src/http/routes/all.ts';
import { startSandbox } from '../src/testing.ts';
import { hasProgram } from './support/process/installed.ts';
import { blocksOf } from './support/reference/guides.ts';
import { temporaryDirectory } from './support/temporary.ts';

const book = readFileSync(join(import.meta.dirname, '../src/http/README.md'), 'utf8');
const run = promisify(execFile);

/** The examples of the routes that exist in this dialect only are in the section of dialects. */
const [, ofDialects = ''] = /\n## Dialects\n([\s\S]*?)\n##/.exec(book) ?? [];
const examples = blocksOf(book, 'sh');
const payhipExamples = blocksOf(ofDialects, 'sh');

test.skipIf(!hasProgram('curl'))('every example of the HTTP guide gets a response 2xx', async () => {
  await using sandbox = await startSandbox({ withHolder: true });
  await using payhip = await startSandbox({ dialect: 'payhip' });
  await using home = temporaryDirectory();
  writeFileSync(join(home.path, '.curlrc'), 'fail-with-body\nsilent\nshow-error\n');
  const agentToken = readAdminToken(sandbox.agent.stateDir);
  const env = {
    PATH: process.env['PATH'],
    CURL_HOME: home.path,
    STORE: sandbox.store.url,
    AGENT: sandbox.agent.url,
    HOLDER: sandbox.holder.url,
    ADMIN: `Authorization: Bearer ${sandbox.store.adminToken}`,
    AGENT_ADMIN: `Authorization: Bearer ${agentToken}`,
  };
  for (const example of examples) {
    const store = payhipExamples.includes(example) ? payhip.store.url : env.STORE;
    const done = run('bash', ['-ec', example], { env: { ...env, STORE: store } });
    await expect(done, example).resolves.toBeDefined();
  }
});

test('the HTTP guide has an example of each group of routes', async () => {
  const calls = examples.flatMap((example) => example.replaceAll(/\\\n/g, '').trim().split('\n'));
  const routes = await routesOf(dialects.payhip);
  const shown = calls.map((call) => {
    const [, path = ''] = /"\$[A-Z]+(\/[^"?]*)/.exec(call) ?? [];
    const [, method = / (?:--json|-d) /.test(call) ? 'POST' : 'GET'] = /-X ([A-Z]+)/.exec(call) ?? [];
    const route = routes.find(
      (each) =>
        each.method === method && new RegExp(`^${each.path.replaceAll(/:\w+/g, '[^/]+')}$`).test(path),
    );
    return route?.tag ?? call;
  });
  expect(new Set(shown)).toEqual(new Set(Object.keys(tags)));
});
