import { execFile } from 'node:child_process';
import { createServer, type ServerResponse } from 'node:http';
import { promisify } from 'node:util';
import { describe, expect, it, vi } from 'vitest';
import { connect, type LatchkeyClient } from '../../src/client/index.ts';
import { listen } from '../support/network/listener.ts';

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
    program: connect({ url: listener.url, productSecret: 'the-secret' }),
    asked: () => asked,
    [Symbol.asyncDispose]: () => listener[Symbol.asyncDispose](),
  };
}

const away = { verdict: 'undetermined', reason: 'agent_away' };

describe('a verify', () => {
  it('is repeated once where the kept connection broke, as it does when the agent starts anew', async () => {
    await using agent = await startAgent((response, asked) => {
      if (asked === 2) response.req.socket.destroy();
      else response.end(answered);
    });
    for (const _ of [1, 2]) expect((await agent.program.verify('KEY')).verdict).toBe('valid');
    expect(agent.asked()).toBe(3);
  });

  it('is not repeated a second time: whoever waits for it is told', async () => {
    await using agent = await startAgent((response, asked) => {
      if (asked > 1) response.req.socket.destroy();
      else response.end(answered);
    });
    await agent.program.verify('KEY');
    expect(await agent.program.verify('KEY')).toMatchObject(away);
    expect(agent.asked()).toBe(3);
  });

  it('is not repeated at all where something answered', async () => {
    await using agent = await startAgent((response) => {
      response.writeHead(502).end('<p>A proxy: bad gateway</p>');
    });
    expect(await agent.program.verify('KEY')).toMatchObject(away);
    expect(agent.asked()).toBe(1);
  });
});

describe('a change', () => {
  it.each([
    [508, 'loop_detected'],
    [501, 'of_a_later_version'],
    [422, 'parameters_invalid'],
  ])('that is refused for good is not repeated: %s %s', async (status, code) => {
    await using agent = await startAgent((response) => {
      response.writeHead(status).end(JSON.stringify({ code, title: '', detail: '' }));
    });
    await expect(agent.program.use('KEY')).rejects.toMatchObject({ code, isTemporary: false });
    expect(agent.asked()).toBe(1);
  });
});

it('a quote is repeated until it is answered, since it changes nothing', async () => {
  const data = { code: 'MAY', redeemable: true, reasons: [], lines: [], coupon_id: 1 };
  const amounts = { subtotal: 0, eligible_subtotal: 0, discount: 0, total: 0 };
  await using agent = await startAgent((response, asked) => {
    if (asked === 1) response.writeHead(502).end('<p>A proxy: bad gateway</p>');
    else response.end(JSON.stringify({ data: { ...data, ...amounts } }));
  });
  const program = connect({ url: agent.url, apiKey: 'the-key' });
  expect(await program.quote({ code: 'MAY', items: [] })).toMatchObject({ couponId: 1 });
  expect(agent.asked()).toBe(2);
});

it.each<[string, (program: LatchkeyClient) => Promise<unknown>, number]>([
  ['five seconds to ask', (program) => program.verify('KEY'), 5_000],
  ['fifteen to change', (program) => program.use('KEY'), 15_000],
  ['and what it is to wait for the store', (program) => program.use('KEY', { waitMs: 2_000 }), 17_000],
])('a call has %s where it says nothing else', async (_, call, deadlineMs) => {
  await using agent = await startAgent((response) => response.end(answered));
  using timers = vi.spyOn(globalThis, 'setTimeout');
  await call(agent.program);
  expect(timers.mock.calls.map(([, waitMs]) => waitMs)).toContain(deadlineMs);
});

it('a program that is done ends, however long its deadlines are', async ({ signal }) => {
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
