import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { promisify } from 'node:util';
import { expect, it, vi } from 'vitest';
import { connect, type LatchkeyClient } from '../../src/client/index.ts';
import { listen } from '../support/network/listener.ts';
import { temporaryDirectory } from '../support/temporary.ts';

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

interface Agent extends AsyncDisposable {
  readonly url: string;
  readonly program: LatchkeyClient;
  /** How many requests it has received. */
  asked(): number;
}

/** An agent that answers each request as `answer` says of its number, from 1 on. */
async function startAgent(answer: (response: ServerResponse, asked: number) => void): Promise<Agent> {
  let asked = 0;
  const server = createServer((_, response) => {
    asked += 1;
    answer(response, asked);
  });
  const listener = await listen(server);
  return {
    url: listener.url,
    program: connect({ url: listener.url, productSecret: 'the-secret', apiKey: 'the-key' }),
    asked: () => asked,
    [Symbol.asyncDispose]: () => listener[Symbol.asyncDispose](),
  };
}

const problem = (code: string): string => JSON.stringify({ code, title: '', detail: '' });
const cart = { code: 'MAY', items: [] };
const away = { verdict: 'undetermined', reason: 'agent_unavailable' };

it('a verify is repeated once after a kept connection broke', async () => {
  await using agent = await startAgent((response, asked) => {
    if (asked === 2) response.req.socket.destroy();
    else response.end(answered);
  });
  for (const _ of [1, 2]) expect((await agent.program.verify('KEY')).verdict).toBe('valid');
  expect(agent.asked()).toBe(3);
});

it('a verify is not repeated a second time', async () => {
  await using agent = await startAgent((response, asked) => {
    if (asked > 1) response.req.socket.destroy();
    else response.end(answered);
  });
  await agent.program.verify('KEY');
  expect(await agent.program.verify('KEY')).toMatchObject(away);
  expect(agent.asked()).toBe(3);
});

it('a verify that was answered is not repeated', async () => {
  await using agent = await startAgent((response) => {
    response.writeHead(502).end('<p>A proxy: bad gateway</p>');
  });
  expect(await agent.program.verify('KEY')).toMatchObject(away);
  expect(agent.asked()).toBe(1);
});

it('a verify finds an agent that restarted on another port', async () => {
  await using directory = temporaryDirectory();
  const program = connect({ stateDir: directory.path, productSecret: 'the-secret' });
  for (const _ of ['before', 'after']) {
    // The next one is to be refused a connection, not to lose a kept one.
    await using agent = await startAgent((response) =>
      response.setHeader('connection', 'close').end(answered),
    );
    const listening = JSON.stringify({ tcp: agent.url });
    writeFileSync(join(directory.path, 'listen.json'), listening, { mode: 0o600 });
    expect((await program.verify('KEY')).verdict).toBe('valid');
  }
});

it.each([
  [508, 'loop_detected'],
  [501, 'of_a_later_version'],
  [422, 'parameters_invalid'],
])('a change that is refused for good is not repeated: %s %s', async (status, code) => {
  await using agent = await startAgent((response) => {
    response.writeHead(status).end(problem(code));
  });
  await expect(agent.program.use('KEY')).rejects.toMatchObject({ code, isTemporary: false });
  expect(agent.asked()).toBe(1);
});

it.each([
  ['storage_failed', true],
  ['outcome_unknown', true],
  ['idempotency_key_in_use', true],
  ['starting', false],
])(
  'whether a change may have counted that is answered by %s, then not at all: %s',
  async (code, mayHaveCounted) => {
    const gone = Promise.withResolvers<void>();
    const listener = await listen(
      createServer((_, response) => {
        response.once('close', () => gone.resolve(listener[Symbol.asyncDispose]()));
        response.writeHead(503, { connection: 'close' }).end(problem(code));
      }),
    );
    const program = connect({ url: listener.url, productSecret: 'the-secret' });
    const failed = await program.use('KEY', { deadlineMs: 500 }).catch((error: unknown) => error);
    expect(failed).toMatchObject({ name: 'AgentUnavailableError', mayHaveCounted });
    await gone.promise;
  },
);

it.each([
  ['lost', true],
  ['answered with starting', false],
])(
  'whether a change may have counted that was %s, then refused until the deadline: %s',
  async (_, mayHaveCounted) => {
    await using agent = await startAgent((response, asked) => {
      if (asked === 1 && mayHaveCounted) response.req.socket.destroy();
      else response.writeHead(503).end(problem('starting'));
    });
    const failed = await agent.program.use('KEY', { deadlineMs: 500 }).catch((error: unknown) => error);
    expect(failed).toMatchObject({ code: 'starting', mayHaveCounted });
  },
);

it.each([
  ['0.2', 200, 200],
  ['Wed, 21 Oct 2026 07:28:00 GMT', null, 25],
])(
  'a change waits for a Retry-After in seconds, and ignores a Retry-After with a date: %s',
  async (after, retryAfterMs, leastMs) => {
    const arrivals: number[] = [];
    await using agent = await startAgent((response, asked) => {
      arrivals.push(performance.now());
      if (asked === 2) response.end(answered);
      else response.writeHead(503, { 'retry-after': after }).end(problem('starting'));
    });
    expect((await agent.program.use('KEY')).license.uses).toBe(1);
    const [first = 0, second = 0] = arrivals;
    // A timer may be early by a millisecond.
    expect(second - first).toBeGreaterThanOrEqual(leastMs - 2);
    expect(await agent.program.verify('KEY')).toMatchObject({ error: { code: 'starting', retryAfterMs } });
  },
);

it.each(['its signal', 'closing the client'])(
  '%s ends a change that waits for its next attempt',
  async (by) => {
    const told = Promise.withResolvers<void>();
    await using agent = await startAgent((response) => {
      response.once('close', () => told.resolve());
      response.writeHead(503, { 'retry-after': '600' }).end(problem('starting'));
    });
    const ending = new AbortController();
    // Only the test's own time ends before these.
    const options = { deadlineMs: 700_000, signal: ending.signal };
    const used = agent.program.use('KEY', options).catch((error: unknown) => error);
    await told.promise;
    for (let turn = 0; turn < 20; turn += 1) await nextTurn();
    const reason = new Error('the window was closed');
    if (by === 'its signal') ending.abort(reason);
    else agent.program.close();
    const closed = { name: 'AgentUnavailableError', mayHaveCounted: false };
    expect(await used).toMatchObject(by === 'its signal' ? reason : closed);
    expect(agent.asked()).toBe(1);
  },
);

it('a quote without an answer has not counted', async () => {
  await using agent = await startAgent((response) => response.req.socket.destroy());
  const quoted = agent.program.quote(cart, { deadlineMs: 200 });
  await expect(quoted).rejects.toMatchObject({ name: 'AgentUnavailableError', mayHaveCounted: false });
});

it('a quote is repeated until it is answered, since it changes nothing', async () => {
  const data = { code: 'MAY', redeemable: true, reasons: [], lines: [], coupon_id: 1 };
  const amounts = { subtotal: 0, eligible_subtotal: 0, discount: 0, total: 0 };
  await using agent = await startAgent((response, asked) => {
    if (asked === 1) response.writeHead(502).end('<p>A proxy: bad gateway</p>');
    else response.end(JSON.stringify({ data: { ...data, ...amounts } }));
  });
  expect(await agent.program.quote(cart)).toMatchObject({ couponId: 1 });
  expect(agent.asked()).toBe(2);
});

it.each<[string, (program: LatchkeyClient) => Promise<unknown>, number]>([
  ['5 s for a verify', (program) => program.verify('KEY'), 5_000],
  ['15 s for a change', (program) => program.use('KEY'), 15_000],
  [
    'waitMs and 15 s for a change that waits for the store',
    (program) => program.use('KEY', { waitMs: 2_000 }),
    17_000,
  ],
  [
    '5 s for a verify whose deadlineMs is undefined',
    (program) => program.verify('KEY', { deadlineMs: undefined }),
    5_000,
  ],
  [
    '5 s for a quote whose deadlineMs is undefined',
    (program) => program.quote(cart, { deadlineMs: undefined }),
    5_000,
  ],
  ['the deadlineMs of a verify', (program) => program.verify('KEY', { deadlineMs: 1_234 }), 1_234],
  ['the deadlineMs of a quote', (program) => program.quote(cart, { deadlineMs: 1_234 }), 1_234],
])('the deadline is %s', async (_, call, deadlineMs) => {
  await using agent = await startAgent((response) => response.end(answered));
  using timers = vi.spyOn(globalThis, 'setTimeout');
  // What is answered is no quote.
  await call(agent.program).catch(() => undefined);
  expect(timers.mock.calls.map(([, waitMs]) => waitMs)).toContain(deadlineMs);
});

it('a program exits although the deadlines of its calls are long', async ({ signal }) => {
  await using agent = await startAgent((response) => response.end(answered));
  const library = new URL('../../src/client/index.ts', import.meta.url).href;
  const options = JSON.stringify({ url: agent.url, productSecret: 'the-secret' });
  const program = `import { connect } from ${JSON.stringify(library)};
    const said = await connect(${options}).verify('KEY', { deadlineMs: 2 ** 31 - 1 });
    console.log(said.verdict);`;
  const started = ['--input-type=module', '-e', program];
  const { stdout } = await promisify(execFile)(process.execPath, started, { signal });
  expect(stdout).toBe('valid\n');
});
