import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { Pool } from 'undici';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startDaemon, type Daemon } from '../../src/daemon/daemon.ts';
import { embeddedConfiguration } from '../../src/daemon/trial/embedded-configuration.ts';
import { LocalClient } from '../../src/daemon/trial/local-client.ts';
import { makeLog } from '../../src/daemon/log/log.ts';
import { makeSample, type Sample } from '../../src/daemon/trial/sample-catalogue.ts';
import { temporaryDirectory } from '../support/temporary.ts';

/** Requests in one iteration, all under way at once. */
const concurrency = 64;

const bare = createServer((_, response) => {
  response.setHeader('content-type', 'application/json').end('{"data":{}}');
});
let directory: ReturnType<typeof temporaryDirectory>;
let daemon: Daemon;
let sample: Sample;
let pool: Pool;
let barePool: Pool;

beforeAll(async () => {
  directory = temporaryDirectory();
  const state = join(directory.path, 'state');
  const tree = { state_dir: state, listen: { tcp: '127.0.0.1:0', socket: false } };
  daemon = await startDaemon(embeddedConfiguration(tree), {
    log: makeLog({ level: 'silent', format: 'json' }),
  });
  const base = daemon.addresses.tcp ?? '';
  const token = readFileSync(join(state, 'admin.token'), 'utf8').trim();
  sample = await makeSample(new LocalClient(base, { authorization: `Bearer ${token}` }));
  pool = new Pool(base, { connections: concurrency });
  await new Promise<void>((resolve) => {
    bare.listen(0, '127.0.0.1', resolve);
  });
  barePool = new Pool(`http://127.0.0.1:${(bare.address() as AddressInfo).port}`, {
    connections: concurrency,
  });
});

afterAll(async () => {
  await pool.close();
  await barePool.close();
  bare.close();
  await daemon.stop();
  await directory[Symbol.asyncDispose]();
});

async function all(one: () => Promise<unknown>): Promise<void> {
  await Promise.all(Array.from({ length: concurrency }, one));
}

test(`${concurrency} requests at once`, { timeout: 120_000 }, async ({ bench }) => {
  const verifyPath = `/api/v2/license/verify?license_key=${sample.licenseKey}`;
  const credential = { 'product-secret-key': sample.secret };
  const form = { ...credential, 'content-type': 'application/x-www-form-urlencoded' };
  const body = `license_key=${sample.licenseKey}`;
  const compared = await bench.compare(
    bench('a bare node:http server', () =>
      all(async () => (await barePool.request({ method: 'GET', path: '/' })).body.dump()),
    ),
    bench('verify a license key', () =>
      all(async () =>
        (await pool.request({ method: 'GET', path: verifyPath, headers: credential })).body.dump(),
      ),
    ),
    bench('record a use, durably', () =>
      all(async () =>
        (
          await pool.request({ method: 'PUT', path: '/api/v2/license/usage', headers: form, body })
        ).body.dump(),
      ),
    ),
  );
  expect(compared).toBeDefined();
});
