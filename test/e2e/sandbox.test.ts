import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { type LeaseCheck, verifyLease } from '../../src/client/index.ts';
import { loadConfiguration } from '../../src/config/load.ts';
import { foreignStoreNames } from '../../src/domain/header-names.ts';
import { ownProgram, runProcess } from '../support/process/command-line.ts';
import { listen } from '../support/network/listener.ts';
import { hasProgram } from '../support/process/installed.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { patience } from '../support/patience.ts';

const [, program = ''] = ownProgram;

/** A sandbox as a person starts it; resolves once it has printed its credentials. */
async function startSandbox(home: string, ...options: string[]) {
  const child = spawn(process.execPath, [program, 'sandbox', ...options], {
    env: { PATH: process.env['PATH'], HOME: home, TMPDIR: home },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let text = '';
  child.stdout.on('data', (chunk: Buffer) => {
    text += chunk.toString();
  });
  const ended = once(child, 'close') as Promise<[number | null]>;
  await vi.waitFor(() => expect(text).toMatch(/agent/), patience);
  const told = (what: string): string => new RegExp(`${what} +(\\S+)`).exec(text)?.[1] ?? '';
  const verify = (key = told('license key')): Promise<Response> =>
    fetch(`${told('address')}/api/v2/license/verify?license_key=${key}`, {
      headers: { 'product-secret-key': told('product secret') },
    });
  return {
    verify,
    state: told('state'),
    says: () => text,
    /** What it has printed with `--json`. */
    facts: JSON.parse(text.startsWith('{') ? text : '{}') as Facts,
    end: async () => {
      child.kill('SIGTERM');
      const [code] = await ended;
      return code;
    },
    [Symbol.asyncDispose]: async () => {
      child.kill('SIGKILL');
      await ended;
    },
  };
}

type Facts = Record<
  | 'address'
  | 'admin_token'
  | 'agent'
  | 'agent_state'
  | 'api_key'
  | 'configuration'
  | 'license_key'
  | 'product_key'
  | 'product_secret'
  | 'state',
  string
> & { holder: { address: string; issuer: string; roots: LeaseCheck['roots'] } };

type License = { uses: number; enabled: boolean };

/** Asks as a program for the license that a sandbox has printed. */
async function ask(
  base: string,
  { license_key, product_secret }: Facts,
  change?: 'usage',
): Promise<{ status: number; license: License | undefined }> {
  const body = new URLSearchParams({ license_key });
  const headers = { 'product-secret-key': product_secret };
  const response = await (change === undefined
    ? fetch(`${base}/api/v2/license/verify?${body.toString()}`, { headers })
    : fetch(`${base}/api/v2/license/${change}`, { method: 'PUT', headers, body }));
  const { data } = (await response.json()) as { data?: License };
  return { status: response.status, license: data };
}

/** Reads with the admin token of a daemon of the sandbox; returns the headers and the body. */
async function readAs(
  token: string,
  url: string,
): Promise<[headers: Headers, body: Record<string, unknown>]> {
  const response = await fetch(url, { headers: { authorization: `Bearer ${token}` } });
  expect(response.status).toBe(200);
  return [response.headers, (await response.json()) as Record<string, unknown>];
}

test('a sandbox accepts the credentials it printed, goes offline when asked, and removes its data', async () => {
  await using home = temporaryDirectory();
  await using sandbox = await startSandbox(home.path, '--offline-after', '10s');
  expect((await sandbox.verify()).status).toBe(200);
  expect(existsSync(sandbox.state)).toBe(true);
  await vi.waitFor(() => expect(sandbox.says()).toContain('offline now'), patience);
  await expect(sandbox.verify()).rejects.toThrow('fetch failed');
  expect(await sandbox.end()).toBe(0);
  expect(existsSync(sandbox.state)).toBe(false);
});

test('a sandbox with a holder prints what a program compiles in, and the program gets a lease', async () => {
  await using home = temporaryDirectory();
  await using sandbox = await startSandbox(home.path, '--with-holder', '--json');
  const { holder, license_key: licenseKey, product_key: product } = sandbox.facts;
  const nonce = '0123456789abcdef';
  const query = new URLSearchParams({ license_key: licenseKey, nonce }).toString();
  const response = await fetch(`${holder.address}/agent/v1/lease?${query}`);
  expect(response.status).toBe(200);
  expect(holder.roots).toHaveLength(2);
  const { data } = (await response.json()) as { data: Pick<LeaseCheck, 'lease' | 'keys' | 'proof'> };
  const { issuer, roots } = holder;
  const said = verifyLease({ ...data, nonce, issuer, roots, product, licenseKey });
  expect(said).toMatchObject({ verdict: 'valid', seats: { limit: 3, taken: 1 }, nonceSignedBy: 'device' });
});

test('a refund at the store of a sandbox reaches the agent by an event, and the device by a notice, within seconds', async () => {
  await using home = temporaryDirectory();
  await using sandbox = await startSandbox(home.path, '--with-webhooks', '--with-holder', '--json');
  const { facts } = sandbox;
  const { address, agent, holder, license_key, admin_token } = facts;
  const isEnabled = async (base: string): Promise<unknown> => (await ask(base, facts)).license?.enabled;
  expect(await isEnabled(agent)).toBe(true);
  expect(await isEnabled(holder.address)).toBe(true);
  // The agent refreshes a license every six hours, and the holder renews a lease once a day.
  const [, sales] = await readAs(admin_token, `${address}/admin/v1/purchases?license_key=${license_key}`);
  const { purchases } = sales['data'] as { purchases: { purchase_id: string }[] };
  const refund = await fetch(`${address}/admin/v1/purchases/${purchases[0]?.purchase_id}/refund`, {
    method: 'POST',
    headers: { authorization: `Bearer ${admin_token}` },
  });
  expect(refund.status).toBe(200);
  await vi.waitFor(async () => expect(await isEnabled(agent)).toBe(false), patience);
  await vi.waitFor(async () => expect(await isEnabled(holder.address)).toBe(false), patience);
});

test('a sandbox with demo data begins with a year of sales, seats and coupons, and with changes that wait for a person', async () => {
  await using home = temporaryDirectory();
  await using sandbox = await startSandbox(home.path, '--demo-data', '--with-agent', '--json');
  const { address, agent, state, admin_token } = sandbox.facts;
  const read = (path: string) => readAs(admin_token, `${address}${path}`);
  const [sales] = await read('/admin/v1/purchases?limit=1');
  expect(Number(sales.get('x-total-count'))).toBeGreaterThan(1_000);
  const monthsAgo = new Date(Date.now() - 350 * 86_400_000).toISOString();
  const [first] = await read(`/admin/v1/purchases?limit=1&until=${monthsAgo}`);
  expect(Number(first.get('x-total-count'))).toBeGreaterThan(5);
  const [refunds] = await read('/admin/v1/purchases?refunded=true&limit=1');
  expect(Number(refunds.get('x-total-count'))).toBeGreaterThan(10);
  const [, seats] = await read('/admin/v1/activations?license_key=ATELR-THREE-SEATS-FULLY');
  const { activations } = seats['data'] as { activations: { has_seat: boolean }[] };
  expect(activations.filter((each) => each.has_seat)).toHaveLength(3);
  const [, coupons] = await read('/agent/v1/coupons?code=spring');
  expect(coupons['data']).toMatchObject({ coupons: [{ code: 'SPRING', state: 'active' }] });
  const agentToken = readFileSync(join(state, '..', 'agent', 'admin.token'), 'utf8').trim();
  const [, status] = await readAs(agentToken, `${agent}/statusz`);
  expect(status).toMatchObject({
    outbox: { held: 2, dead: 1, conflicted: 1 },
    records: { fresh: expect.any(Number) },
  });
  expect((status['outbox'] as { delivered: number }).delivered).toBeGreaterThan(20);
  const [, series] = await readAs(agentToken, `${agent}/admin/v1/series?step=60`);
  const { upstream } = series['data'] as { upstream: string[] };
  expect(upstream.filter((each) => each === 'down').length).toBeGreaterThan(100);
});

test('a sandbox that cannot start prints the reason and leaves nothing behind', async () => {
  await using home = temporaryDirectory();
  await using elsewhere = temporaryDirectory();
  await using taken = await listen(createServer());
  const file = join(home.path, 'a file');
  writeFileSync(file, '');
  const environment = { HOME: home.path, TMPDIR: elsewhere.path };
  for (const [option, value, reason] of [
    [
      '--port',
      String(taken.port),
      /^latchkey: another program listens on 127\.0\.0\.1:\d+; choose another: --port\n$/,
    ],
    ['--write-config', home.path, /is a folder: name a file, such as \S+\/latchkey\.yaml\n$/],
    ['--credentials', home.path, /^latchkey: --credentials: \S+ cannot be read: it is a folder\n$/],
    ['--credentials', join(home.path, 'none', 'c.json'), /^latchkey: --credentials: there is no folder for /],
    ['--credentials', join(file, 'c.json'), /c\.json cannot be read: not a directory\n$/],
    [
      '--credentials',
      '/proc/c.json',
      /: --credentials: \/proc\/c\.json cannot be written: no such file or directory\n$/,
    ],
    ['--write-config', join(file, 'x'), /: --write-config: \S.*\/x cannot be read: not a directory\n$/],
  ] as const) {
    const { code, err } = await runProcess(['sandbox', option, value], environment);
    expect([code, err]).toEqual([1, expect.stringMatching(reason)]);
    expect(readdirSync(elsewhere.path)).toEqual([]);
  }
});

test('a sandbox can refuse every request, or leave every request unanswered', async () => {
  await using home = temporaryDirectory();
  await using refusing = await startSandbox(home.path, '--error-rate', '1');
  expect((await refusing.verify()).status).toBe(503);
  await using silent = await startSandbox(home.path, '--lost-replies', '1');
  await expect(silent.verify()).rejects.toThrow('fetch failed');
});

test('a sandbox of the store answers as the store does, and prints how to put an agent in front of it', async () => {
  await using home = temporaryDirectory();
  await using sandbox = await startSandbox(home.path, '--dialect', 'payhip');
  expect(await (await sandbox.verify()).json()).toMatchObject({ data: { product_name: 'Sample product' } });
  const unknown = await sandbox.verify('NONE');
  expect([unknown.status, await unknown.json()]).toEqual([400, { error: true, message: expect.any(String) }]);
  expect(sandbox.says()).toContain('dialect: payhip');
});

test('a sandbox keeps its credentials for the next sandbox, and can run an agent in front of it', async () => {
  await using home = temporaryDirectory();
  const file = join(home.path, 'credentials.json');
  const first = await startSandbox(home.path, '--credentials', file, '--json', '--with-agent');
  const { facts } = first;
  expect((await ask(facts.agent, facts)).status).toBe(200);
  expect(await first.end()).toBe(0);
  expect((statSync(file).mode & 0o777).toString(8)).toBe('600');
  const kept = JSON.parse(readFileSync(file, 'utf8')) as object;
  expect(facts).toMatchObject(kept);
  await using second = await startSandbox(home.path, '--credentials', file, '--json');
  expect(second.facts).toMatchObject(kept);
  expect((await ask(second.facts.address, second.facts)).status).toBe(200);
});

test.each([
  ['--with-agent', [], 'latchkey'],
  ['--with-agent --plain', ['--plain'], 'plain'],
] as const)(
  'the agent of sandbox %s sends a use to the sandbox, by its protocol',
  async (_, options, protocol) => {
    await using home = temporaryDirectory();
    await using sandbox = await startSandbox(home.path, '--json', '--with-agent', ...options);
    const { facts } = sandbox;
    const token = readFileSync(join(facts.agent_state, 'admin.token'), 'utf8').trim();
    const upstreamOf = async () => {
      const [, { upstream }] = await readAs(token, `${facts.agent}/statusz`);
      return upstream as {
        protocol: string;
        follows: { followed: number }[];
        last_success_at: string | null;
      };
    };
    await ask(facts.agent, facts);
    await vi.waitFor(async () => expect((await upstreamOf()).last_success_at).not.toBeNull(), patience);
    // The first answer shows what the upstream is.
    await vi.waitFor(async () => expect((await upstreamOf()).protocol).toBe(protocol), patience);
    expect((await ask(facts.agent, facts, 'usage')).status).toBe(200);
    const atStore = async () => (await ask(facts.address, facts)).license;
    await vi.waitFor(async () => expect(await atStore()).toMatchObject({ uses: 1 }), patience);
    const followed = protocol === 'plain' ? [] : [1];
    await vi.waitFor(async () => {
      const { protocol: chosen, follows } = await upstreamOf();
      expect([chosen, follows.map((each) => each.followed)]).toEqual([protocol, followed]);
    }, patience);
    const [, listed] = await readAs(facts.admin_token, `${facts.address}/admin/v1/agents`);
    const { agents } = listed['data'] as { agents: { followed: number }[] };
    expect(agents.map((each) => each.followed)).toEqual(followed);
  },
);

test('a sandbox without options has the license key and the credentials that README.md shows', async () => {
  await using home = temporaryDirectory();
  await using sandbox = await startSandbox(home.path, '--json');
  const { facts } = sandbox;
  const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');
  expect(readme).toContain(`-H 'product-secret-key: ${facts.product_secret}'`);
  expect(readme).toContain(`license_key=${facts.license_key}`);
  expect(facts.product_key).toBe('RGsF');
  expect((await ask(facts.address, facts)).status).toBe(200);
});

test('a sandbox writes an agent configuration that starts unchanged, and never overwrites another configuration', async () => {
  await using home = temporaryDirectory();
  const file = join(home.path, 'agent', 'latchkey.yaml');
  const options = ['--keep', join(home.path, 'kept'), '--write-config', file, '--dialect', 'payhip'];
  const sandbox = await startSandbox(home.path, ...options, '--json');
  const { facts } = sandbox;
  expect([facts.configuration, (statSync(file).mode & 0o777).toString(8)]).toEqual([file, '600']);
  const text = readFileSync(file, 'utf8');
  expect(text).toContain('tcp: 127.0.0.1:8787');
  const agent = spawn(process.execPath, [program, 'serve', '--config', file, '--listen', '127.0.0.1:0'], {
    env: { PATH: process.env['PATH'], HOME: home.path },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(agent, 'close');
  try {
    const stateDir = join(home.path, 'agent', 'latchkey-state');
    await vi.waitFor(() => expect(existsSync(join(stateDir, 'listen.json'))).toBe(true), patience);
    const { tcp } = JSON.parse(readFileSync(join(stateDir, 'listen.json'), 'utf8')) as { tcp: string };
    expect((await ask(tcp, facts)).status).toBe(200);
    expect((await ask(tcp, { ...facts, license_key: 'MISTYPED' })).status).toBe(400);
  } finally {
    agent.kill('SIGKILL');
    await ended;
  }
  expect(await sandbox.end()).toBe(0);
  const again = await startSandbox(home.path, ...options, '--json');
  expect([await again.end(), readFileSync(file, 'utf8')]).toEqual([0, text]);
  writeFileSync(file, `${text}# edited\n`);
  const refused = await runProcess(['sandbox', ...options], { HOME: home.path });
  expect([refused.code, refused.err]).toEqual([
    1,
    `latchkey: ${file} exists: it is not overwritten. To use it as it is, leave --write-config out\n`,
  ]);
  expect(readFileSync(file, 'utf8')).toBe(`${text}# edited\n`);
});

test('a sandbox that is kept comes back with its uses, on its port, and an agent that saw the uses goes on counting', async () => {
  await using home = temporaryDirectory();
  const kept = join(home.path, 'kept');
  const options = ['--keep', kept, '--with-agent', '--with-holder', '--json'];
  const first = await startSandbox(home.path, ...options);
  const { facts } = first;
  const usesAt = async (base: string): Promise<unknown> => (await ask(base, facts)).license?.uses;
  for (let uses = 1; uses <= 3; uses += 1) expect((await ask(facts.agent, facts, 'usage')).status).toBe(200);
  await vi.waitFor(async () => expect(await usesAt(facts.address)).toBe(3), patience);
  expect(await first.end()).toBe(0);

  await using second = await startSandbox(home.path, ...options);
  expect(second.facts).toEqual(facts);
  expect(await usesAt(facts.address)).toBe(3);
  expect((await ask(facts.agent, facts, 'usage')).status).toBe(200);
  await vi.waitFor(async () => expect(await usesAt(facts.address)).toBe(4), patience);
  expect(await usesAt(facts.agent)).toBe(4);
  expect((await ask(facts.holder.address, facts)).status).toBe(200);

  const refusals: [string[], RegExp][] = [
    [['--keep', kept], /^latchkey: Another process is using the state directory \S+/],
    [['--keep', kept, '--port', '1'], /^latchkey: --port: the sandbox in \S+ was begun on port \d+/],
    [['--keep', kept, '--demo-data'], /^latchkey: --demo-data: the sandbox in \S+ was begun without it/],
    [['--keep', home.path], /^latchkey: --keep: \S+ has other files in it: choose an empty folder/],
    [['--keep', program], /^latchkey: --keep: \S+ is a file: a folder is needed/],
  ];
  for (const [argv, reason] of refusals) {
    const { code, err } = await runProcess(['sandbox', ...argv], { HOME: home.path, TMPDIR: home.path });
    expect([code, err]).toEqual([1, expect.stringMatching(reason)]);
  }
  expect(await usesAt(facts.address)).toBe(4);
});

test.skipIf(!hasProgram('curl')).each(foreignStoreNames)(
  'a sandbox with a stand-in for %s prints the configuration of an agent, and a call that the store answers',
  async (store) => {
    await using home = temporaryDirectory();
    await using sandbox = await startSandbox(home.path, '--store', store);
    const [, address = ''] = /address +(\S+)/.exec(sandbox.says()) ?? [];
    const [, call = ''] = /^ {2}curl (.*)$/m.exec(sandbox.says()) ?? [];
    const [, text = ''] = /in front of it:\n([\s\S]*)$/.exec(sandbox.says()) ?? [];
    const loaded = loadConfiguration({ file: join(home.path, 'latchkey.yaml'), text, environment: {} });
    expect(loaded).toMatchObject({
      ok: true,
      configuration: { role: 'agent', upstream: { store, baseUrl: address } },
    });
    const { status, stdout } = spawnSync('sh', ['-c', `curl -sS -o /dev/null -w '%{http_code}' ${call}`], {
      encoding: 'utf8',
    });
    expect([status, stdout]).toEqual([0, '200']);
    expect(await sandbox.end()).toBe(0);
  },
);

test('the first run of a kept sandbox leaves an empty folder if it fails', async () => {
  await using home = temporaryDirectory();
  await using taken = await listen(createServer());
  const kept = join(home.path, 'kept');
  const { code } = await runProcess(['sandbox', '--keep', kept, '--port', String(taken.port)], {
    HOME: home.path,
  });
  expect([code, readdirSync(kept)]).toEqual([1, []]);
});

test.each([
  ['sandbox', '--state-dir', /^latchkey: --state-dir cannot be given here: .*--keep DIR/],
  ['sandbox', '--config', /^latchkey: --config cannot be given here: .*--keep DIR/],
  ['demo', '--state-dir', /^latchkey: --state-dir cannot be given here: the demo has its own data/],
])('latchkey %s refuses %s instead of ignoring it', async (command, option, reason) => {
  await using home = temporaryDirectory();
  const { code, err } = await runProcess([command, option, join(home.path, 'x')], { HOME: home.path });
  expect([code, err]).toEqual([2, expect.stringMatching(reason)]);
  expect(readdirSync(home.path)).toEqual([]);
});

test('a sandbox with the same seed fails the same requests', async () => {
  await using home = temporaryDirectory();
  const statuses = async (seed: string): Promise<number[]> => {
    await using sandbox = await startSandbox(home.path, '--error-rate', '0.5', '--seed', seed);
    const seen: number[] = [];
    for (let count = 0; count < 24; count += 1) seen.push((await sandbox.verify()).status);
    return seen;
  };
  const first = await statuses('one');
  expect(new Set(first)).toEqual(new Set([200, 503]));
  expect(await statuses('one')).toEqual(first);
  expect(await statuses('two')).not.toEqual(first);
});

test('a sandbox refuses guessable or malformed credentials without repeating them', async () => {
  await using home = temporaryDirectory();
  const file = join(home.path, 'credentials.json');
  writeFileSync(file, JSON.stringify({ api_key: 'short-secret', product_key: 'P' }));
  const refused = await runProcess(['sandbox', '--credentials', file], { HOME: home.path });
  expect(refused.code).toBe(1);
  expect(refused.err).toContain('api_key');
  expect(refused.err).not.toContain('short-secret');
});
