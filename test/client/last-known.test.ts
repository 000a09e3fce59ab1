import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { basename, dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import {
  ConfigurationError,
  connect,
  LastKnown,
  type LastKnownOptions,
  type License,
  type Verdict,
} from '../../src/client/index.ts';
import { writeLicense } from '../../src/client/wire.ts';
import { listen } from '../support/network/listener.ts';
import { isWindows } from '../support/platform.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const day = 24 * 60 * 60 * 1000;
const today = Date.UTC(2026, 0, 1);
const license: License = {
  licenseKey: 'WTKP4-66NL5-HMKQW-GFSCZ',
  productKey: 'RGsF',
  buyerEmail: 'buyer@example.com',
  enabled: true,
  uses: 3,
  date: new Date(Date.UTC(2025, 0, 1)),
  entitlements: ['pro'],
  expiresAt: null,
  graceUntil: null,
  status: 'active',
};
const key = license.licenseKey;
const disabled: Verdict = {
  verdict: 'refused',
  reason: 'disabled',
  license: { ...license, enabled: false },
  source: 'agent',
};
const notFound: Verdict = { verdict: 'refused', reason: 'not_found', license: null, source: 'agent' };
const unavailable: Verdict = {
  verdict: 'undetermined',
  reason: 'agent_unavailable',
  license: null,
  error: null,
};

function valid(confirmedAt = new Date(), terms: Partial<License> = {}): Verdict {
  return {
    verdict: 'valid',
    license: { ...license, ...terms },
    source: 'agent',
    freshness: 'fresh',
    confirmedAt,
    graceUntil: null,
    pending: 0,
  };
}

/** An agent that knows the key for one of two tokens. */
function answerOneProduct({ headers }: IncomingMessage, response: ServerResponse): void {
  if (headers['product-secret-key'] === 'token-of-one') {
    response.end(JSON.stringify({ data: writeLicense(license) }));
    return;
  }
  const problem = { code: 'license_not_found', title: 'No such license key', detail: '' };
  response.writeHead(404).end(JSON.stringify(problem));
}

let directory: ReturnType<typeof temporaryDirectory>;
let file: string;
/** The address of the agent, in the tests that have one. */
let url: string;

/** Resolves a verdict of the agent in a new process. */
async function resolve(verdict: Verdict, licenseKey = key): Promise<string> {
  const resolved = await new LastKnown({ file }).resolve(licenseKey, verdict);
  return resolved.verdict === 'valid' ? `valid (${resolved.source})` : resolved.reason;
}

function pass(ms: number): void {
  vi.setSystemTime(Date.now() + ms);
}

beforeEach(() => {
  directory = temporaryDirectory();
  file = join(directory.path, 'made', 'last-known.json');
  vi.useFakeTimers({ toFake: ['Date'], now: today });
});
afterEach(async () => {
  vi.useRealTimers();
  vi.unstubAllEnvs();
  await directory[Symbol.asyncDispose]();
});

it('a key that was pasted with invisible or typographic characters has the verdict of the plain key', async () => {
  const pasted = [`${key}\u200b`, key.replaceAll('-', '–')];
  await resolve(valid(), pasted[0]);
  for (const form of [key, ...pasted]) expect(await resolve(unavailable, form)).toBe('valid (last_known)');
  expect(await resolve(disabled, pasted[1])).toBe('disabled');
  expect(await resolve(unavailable)).toBe('disabled');
  expect(await resolve(unavailable, `${key}-1`)).toBe('agent_unavailable');
});

it('while the agent is down, a valid key stays valid until the grace period ends', async () => {
  expect(await resolve(valid())).toBe('valid (agent)');
  pass(13 * day);
  expect(await resolve(unavailable)).toBe('valid (last_known)');
  pass(day);
  expect(await resolve(unavailable)).toBe('agent_unavailable');
});

it('setting the clock back does not extend the grace period', async () => {
  await resolve(valid());
  pass(14.5 * day);
  expect(await resolve(notFound)).toBe('expired');
  pass(-10 * day);
  expect(await resolve(unavailable)).toBe('agent_unavailable');
});

it('a clock that was ahead for a moment does not extend the grace period', async () => {
  pass(365 * day);
  expect(await resolve(valid())).toBe('valid (agent)');
  pass(-365 * day);
  expect(await new LastKnown({ file }).resolve(key, unavailable)).toMatchObject({
    verdict: 'valid',
    confirmedAt: new Date(today),
    graceUntil: new Date(today + 14 * day),
  });
  pass(14 * day - 1);
  expect(await resolve(unavailable)).toBe('valid (last_known)');
  pass(1);
  expect(await resolve(unavailable)).toBe('agent_unavailable');
});

it('an answer counts although another process saw a clock that was ahead', async () => {
  const [one, other] = [new LastKnown({ file }), new LastKnown({ file })];
  await one.resolve(key, valid());
  await other.resolve(key, valid());
  pass(365 * day);
  await one.resolve(key, valid());
  pass(-365 * day);
  await other.resolve(key, disabled);
  expect(await resolve(unavailable)).toBe('disabled');
});

it('the grace period starts when the store confirmed the key, not when the agent answered', async () => {
  await resolve(valid(new Date(today - 10 * day)));
  pass(4 * day - 1);
  expect(await resolve(unavailable)).toBe('valid (last_known)');
  pass(1);
  expect(await resolve(unavailable)).toBe('agent_unavailable');
});

it('white space around a key does not make it another key', async () => {
  await resolve(valid(), ` ${key}\n`);
  expect(await resolve(unavailable)).toBe('valid (last_known)');
});

it('a grace period of 0 uses the answers of the agent only', async () => {
  const lastKnown = new LastKnown({ file, graceMs: 0 });
  expect((await lastKnown.resolve(key, valid())).verdict).toBe('valid');
  expect((await lastKnown.resolve(key, unavailable)).verdict).toBe('undetermined');
});

it('a confirmation with a date in the future does not extend the grace period', async () => {
  await resolve(valid(new Date(today + 30 * day)));
  pass(13 * day);
  expect(await resolve(unavailable)).toBe('valid (last_known)');
  pass(day);
  expect(await resolve(unavailable)).toBe('agent_unavailable');
});

it('while the agent is down, the last known license is returned', async () => {
  await resolve(valid());
  expect(await new LastKnown({ file }).resolve(key, unavailable)).toEqual({
    verdict: 'valid',
    license,
    source: 'last_known',
    freshness: 'grace',
    confirmedAt: new Date(today),
    graceUntil: new Date(today + 14 * day),
    pending: 0,
  });
});

it('a license is not valid after its end while the agent is down, and a renewal counts at once', async () => {
  const end = (days: number): Date => new Date(today + days * day);
  await resolve(valid(new Date(), { expiresAt: end(2) }));
  pass(2 * day);
  expect(await resolve(unavailable)).toBe('valid (last_known)');
  pass(1);
  expect(await resolve(unavailable)).toBe('agent_unavailable');
  await resolve(valid(new Date(), { expiresAt: end(3) }));
  await resolve(valid(new Date(), { expiresAt: end(300) }));
  pass(2 * day);
  expect(await resolve(unavailable)).toBe('valid (last_known)');
});

it('a license is valid until the end of its grace while the agent is down, and a longer grace counts at once', async () => {
  const expiresAt = new Date(today + day);
  await resolve(valid(new Date(), { expiresAt }));
  await resolve(valid(new Date(), { expiresAt, graceUntil: new Date(today + 3 * day) }));
  pass(3 * day);
  expect(await resolve(unavailable)).toBe('valid (last_known)');
  pass(1);
  expect(await resolve(unavailable)).toBe('agent_unavailable');
});

it('a key that was never valid has no last known verdict', async () => {
  expect(await resolve(unavailable)).toBe('agent_unavailable');
  expect(await resolve(notFound)).toBe('not_found');
});

it('a disabled key is refused at once, and stays refused while the agent is down', async () => {
  await resolve(valid());
  expect(await resolve(disabled)).toBe('disabled');
  expect(await resolve(unavailable)).toBe('disabled');
});

it('a valid key is refused as not found only if the agent still says so a day later', async () => {
  await resolve(valid());
  expect(await resolve(notFound)).toBe('valid (last_known)');
  pass(day - 1);
  expect(await resolve(notFound)).toBe('valid (last_known)');
  pass(1);
  expect(await resolve(notFound)).toBe('not_found');
  expect(await resolve(unavailable)).toBe('not_found');
  expect(await resolve(notFound)).toBe('not_found');
});

it('a valid answer between two "not found" answers keeps the key valid', async () => {
  await resolve(valid());
  await resolve(notFound);
  pass(day / 2);
  await resolve(valid());
  pass(day / 2);
  expect(await resolve(notFound)).toBe('valid (last_known)');
});

it('an unavailable agent never refuses a key: the key only becomes undetermined', async () => {
  await resolve(valid());
  pass(30 * day);
  expect(await resolve(unavailable)).toBe('agent_unavailable');
  expect(await resolve(notFound)).toBe('expired');
  expect(await resolve(valid())).toBe('valid (agent)');
});

it('a disabled key becomes valid again when the agent says so', async () => {
  await resolve(disabled);
  expect(await resolve(unavailable)).toBe('disabled');
  expect(await resolve(valid())).toBe('valid (agent)');
  expect(await resolve(unavailable)).toBe('valid (last_known)');
});

// Windows has access control lists in place of permission bits.
it.skipIf(isWindows)(
  'only this user can read the file and its directory, and the file contains no license key',
  async () => {
    await resolve(valid());
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(statSync(dirname(file)).mode & 0o777).toBe(0o700);
    expect(readFileSync(file, 'utf8')).not.toContain(key);
  },
);

it.each([
  '',
  '{',
  '[]',
  '{"version":2,"keys":{}}',
  '{"version":1}',
  '{"version":1,"now":1,"systemTime":1,"keys":{"a":{"verdict":"valid"}}}',
])('a file with the content %j counts as empty and is replaced', async (text) => {
  await resolve(valid());
  writeFileSync(file, text);
  expect(await resolve(unavailable)).toBe('agent_unavailable');
  await resolve(valid());
  expect(await resolve(unavailable)).toBe('valid (last_known)');
});

it.each<[string, object, object]>([
  ['another version', { version: 2 }, {}],
  ['a time that is not a number', { now: 'now' }, {}],
  ['a system time that is not a number', { systemTime: 'now' }, {}],
  ['an unknown verdict', {}, { verdict: 'perhaps' }],
  ['an invalid license', {}, { license: {} }],
  ['an invalid confirmation time', {}, { confirmedAt: '2026-01-20' }],
  ['an invalid answer time', {}, { saidAt: null }],
  ['an invalid "not found" time', {}, { notFoundSince: 'never' }],
])('a file with %s counts as empty', async (_, inFile, inEntry) => {
  await resolve(valid());
  const stored = JSON.parse(readFileSync(file, 'utf8')) as { keys: Record<string, object> };
  expect(await resolve(unavailable)).toBe('valid (last_known)');
  const keys = Object.fromEntries(
    Object.entries(stored.keys).map(([name, entry]) => [name, { ...entry, ...inEntry }]),
  );
  writeFileSync(file, JSON.stringify({ ...stored, keys, ...inFile }));
  expect(await resolve(unavailable)).toBe('agent_unavailable');
});

it('a file that cannot be written causes no error', async () => {
  writeFileSync(join(directory.path, 'made'), 'no directory');
  expect(await resolve(valid())).toBe('valid (agent)');
});

it('a failed write leaves no temporary file', async () => {
  mkdirSync(file, { recursive: true });
  expect(await resolve(valid())).toBe('valid (agent)');
  expect(readdirSync(dirname(file))).toEqual([basename(file)]);
});

it('the file is written at most once an hour while the verdict stays the same', async () => {
  const lastKnown = new LastKnown({ file });
  await lastKnown.resolve(key, valid());
  const { mtimeNs, ino } = statSync(file, { bigint: true });
  pass(day / 48);
  await lastKnown.resolve(key, valid());
  expect(statSync(file, { bigint: true })).toMatchObject({ mtimeNs, ino });
  pass(day / 24);
  await lastKnown.resolve(key, valid());
  expect(statSync(file, { bigint: true }).ino).not.toBe(ino);
});

it('confirmations that arrive every half hour extend the grace period', async () => {
  const lastKnown = new LastKnown({ file });
  for (let asked = 0; asked <= 15 * 24; asked += 0.5) {
    await lastKnown.resolve(key, valid());
    pass(day / 48);
  }
  expect(await resolve(unavailable)).toBe('valid (last_known)');
});

it('a failed write is repeated at the next verdict', async () => {
  writeFileSync(join(directory.path, 'made'), 'no directory');
  const lastKnown = new LastKnown({ file });
  await lastKnown.resolve(key, disabled);
  rmSync(join(directory.path, 'made'));
  await lastKnown.resolve(key, disabled);
  expect(await resolve(unavailable)).toBe('disabled');
});

it('several processes can share the file, and the latest answer about a key counts', async () => {
  const [one, other] = [new LastKnown({ file }), new LastKnown({ file })];
  await one.resolve('shared', valid());
  await other.resolve('shared', valid());
  pass(1);
  await one.resolve('shared', disabled);
  expect(await other.resolve('shared', unavailable)).toMatchObject({ reason: 'disabled' });
  pass(1);
  await Promise.all([one.resolve('first', valid()), one.resolve('second', valid())]);
  await other.resolve('third', valid());
  const again = new LastKnown({ file });
  for (const name of ['first', 'second', 'third']) {
    expect(await again.resolve(name, unavailable)).toMatchObject({ verdict: 'valid' });
  }
  expect(await again.resolve('shared', unavailable)).toMatchObject({ reason: 'disabled' });
  pass(1);
  await other.resolve('shared', valid());
  expect(await one.resolve('shared', unavailable)).toMatchObject({ verdict: 'valid' });
});

it('the same key of another product has a verdict of its own', async () => {
  await new LastKnown({ file }, 'one secret').resolve(key, valid());
  expect(await new LastKnown({ file }, 'another secret').resolve(key, notFound)).toBe(notFound);
  expect((await new LastKnown({ file }, 'one secret').resolve(key, unavailable)).verdict).toBe('valid');
  expect(readFileSync(file, 'utf8')).not.toContain('secret');
});

it.each([
  ['an option', (token: string) => connect({ url, token, lastKnown: { file } })],
  [
    'the environment',
    (token: string) => {
      vi.stubEnv('LATCHKEY_TOKEN', token);
      return connect({ url, lastKnown: { file } });
    },
  ],
  [
    'a file',
    (token: string) => {
      writeFileSync(join(directory.path, token), token);
      vi.stubEnv('LATCHKEY_TOKEN_FILE', join(directory.path, token));
      return connect({ url, lastKnown: { file } });
    },
  ],
])('the same key of another product has a verdict of its own if the token is in %s', async (_, program) => {
  await using agent = await listen(createServer(answerOneProduct));
  ({ url } = agent);
  expect((await program('token-of-one').verify(key)).verdict).toBe('valid');
  expect(await program('token-of-another').verify(key)).toMatchObject({ reason: 'not_found' });
  url = 'http://127.0.0.1:1';
  expect((await program('token-of-one').verify(key)).verdict).toBe('valid');
});

it('the file keeps the hundred keys with the latest answers', async () => {
  const lastKnown = new LastKnown({ file });
  for (let count = 0; count <= 100; count += 1) {
    pass(1);
    await lastKnown.resolve(`key ${count}`, valid());
  }
  const again = new LastKnown({ file });
  expect((await again.resolve('key 0', unavailable)).verdict).toBe('undetermined');
  expect((await again.resolve('key 1', unavailable)).verdict).toBe('valid');
});

it.each([
  [{}, 'lastKnown.file'],
  [{ file: '' }, 'lastKnown.file'],
  [{ file: 'last-known.json', graceMs: '14d' }, 'lastKnown.graceMs'],
  [{ file: 'last-known.json', graceMs: Number.NaN }, 'lastKnown.graceMs'],
  [{ file: 'last-known.json', graceMs: -1 }, 'lastKnown.graceMs'],
])('connect rejects the invalid lastKnown options %j', (options, named) => {
  const lastKnown = options as LastKnownOptions;
  expect(() => connect({ token: 'token', lastKnown })).toThrow(ConfigurationError);
  expect(() => connect({ token: 'token', lastKnown })).toThrow(named);
});

it('an infinite grace period ends at a date that can be represented', async () => {
  const lastKnown = new LastKnown({ file, graceMs: Infinity });
  await lastKnown.resolve(key, valid());
  pass(1_000 * day);
  const resolved = await lastKnown.resolve(key, unavailable);
  expect(resolved).toMatchObject({ verdict: 'valid', source: 'last_known' });
  expect(resolved.verdict === 'valid' && resolved.graceUntil?.getUTCFullYear()).toBeGreaterThan(4_000);
});
