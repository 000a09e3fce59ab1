import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import timers from 'node:timers/promises';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { AgentUnavailableError, connect, type LatchkeyClient } from '../../src/client/index.ts';
import { listen } from '../support/network/listener.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const clock = { ms: 0 };

// A wait between two attempts passes at once, and the clock says that the time has passed.
beforeEach(() => {
  clock.ms = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => clock.ms);
  vi.spyOn(timers, 'setTimeout').mockImplementation((ms = 0) => {
    clock.ms += ms;
    return Promise.resolve();
  });
  syncBuiltinESMExports();
});
afterEach(() => {
  vi.restoreAllMocks();
  syncBuiltinESMExports();
});

const answered = JSON.stringify({
  data: {
    license_key: 'KEY',
    product_link: 'RGsF',
    buyer_email: 'buyer@example.com',
    enabled: true,
    uses: 1,
    date: '2026-01-01T00:00:00Z',
  },
});

/** Calls a client that reaches no agent. Gives the error and the ms until the call gave up. */
async function giveUp(call: Promise<unknown>): Promise<[unknown, number]> {
  const startedAt = clock.ms;
  const error = await call.catch((each: unknown) => each);
  return [error, clock.ms - startedAt];
}

/** A client whose agent answers one request and then ends. */
async function clientOfEndedAgent(): Promise<LatchkeyClient> {
  await using agent = await listen(
    createServer((_, response) => response.setHeader('connection', 'close').end(answered)),
  );
  const program = connect({ url: agent.url, productSecret: 'the-secret', apiKey: 'the-key' });
  await program.verify('KEY');
  return program;
}

it.each<[string, (program: LatchkeyClient) => Promise<unknown>]>([
  ['use', (program) => program.use('KEY')],
  ['undo', (program) => program.undo('KEY')],
  ['a use that waits for the store', (program) => program.use('KEY', { waitMs: 30_000 })],
  ['redeem', (program) => program.redeem('order-1', { code: 'MAY', items: [] })],
  ['quote', (program) => program.quote({ code: 'MAY', items: [] })],
])('%s gives up within 2 s if no agent accepts a connection', async (_, call) => {
  await using directory = temporaryDirectory();
  const leftBehind = JSON.stringify({ tcp: 'http://127.0.0.1:1', socket: join(directory.path, 'gone.sock') });
  writeFileSync(join(directory.path, 'listen.json'), leftBehind, { mode: 0o600 });
  const program = connect({ stateDir: directory.path, productSecret: 'the-secret', apiKey: 'the-key' });
  const [error, ms] = await giveUp(call(program));
  expect(error).toBeInstanceOf(AgentUnavailableError);
  expect(error).toMatchObject({ mayHaveCounted: false });
  expect(ms).toBeGreaterThan(500);
  expect(ms).toBeLessThan(2_000);
});

it('a deadline that the program sets is kept although no agent accepts a connection', async () => {
  const program = connect({ url: 'http://127.0.0.1:1', productSecret: 'the-secret' });
  const [, ms] = await giveUp(program.use('KEY', { deadlineMs: 10_000 }));
  expect(ms).toBeGreaterThan(7_000);
});

it('a change waits 15 s for an agent that was there before, then 2 s', async () => {
  const program = await clientOfEndedAgent();
  const [, first] = await giveUp(program.use('KEY'));
  expect(first).toBeGreaterThan(12_000);
  const [, second] = await giveUp(program.use('KEY'));
  expect(second).toBeLessThan(2_000);
});

it('a verify that fails does not shorten how long a change waits for an agent that restarts', async () => {
  const program = await clientOfEndedAgent();
  expect(await program.verify('KEY')).toMatchObject({ verdict: 'undetermined' });
  const [, ms] = await giveUp(program.use('KEY'));
  expect(ms).toBeGreaterThan(12_000);
});
