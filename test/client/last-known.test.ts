import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { basename, dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  ConfigurationError,
  connect,
  LastKnown,
  type LastKnownOptions,
  type License,
  type Verdict,
} from '../../src/client/index.ts';
import { writeLicense } from '../../src/client/license.ts';
import { listen } from '../support/network/listener.ts';
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
};
const key = license.licenseKey;
const disabled: Verdict = {
  verdict: 'refused',
  reason: 'disabled',
  license: { ...license, enabled: false },
  source: 'agent',
};
const notFound: Verdict = { verdict: 'refused', reason: 'not_found', license: null, source: 'agent' };
const away: Verdict = { verdict: 'undetermined', reason: 'agent_away', license: null, error: null };

function valid(): Verdict {
  return {
    verdict: 'valid',
    license,
    source: 'agent',
    freshness: 'fresh',
    confirmedAt: new Date(),
    graceUntil: null,
    pending: 0,
  };
}

/** An agent that knows the key for the token of one product. */
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
/** Where the agent is, where one is asked. */
let url: string;

/** Judges as a program does that is started for each question. */
async function judge(said: Verdict): Promise<string> {
  const judged = await new LastKnown({ file }).judge(key, said);
  return judged.verdict === 'valid' ? `valid (${judged.source})` : judged.reason;
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

it('a key that is pasted with invisible or typographic characters is remembered as the key that it is', async () => {
  const said = async (licenseKey: string, verdict: Verdict): Promise<string> => {
    const judged = await new LastKnown({ file }).judge(licenseKey, verdict);
    return judged.verdict === 'valid' ? `valid (${judged.source})` : judged.reason;
  };
  const pasted = [`${key}\u200b`, key.replaceAll('-', '–')];
  await said(pasted[0] ?? '', valid());
  for (const form of [key, ...pasted]) expect(await said(form, away)).toBe('valid (last_known)');
  expect(await said(pasted[1] ?? '', disabled)).toBe('disabled');
  expect(await said(key, away)).toBe('disabled');
  expect(await said(`${key}-1`, away)).toBe('agent_away');
});

describe('while the agent is down', () => {
  it('a key that was valid goes on for the grace, and no longer', async () => {
    expect(await judge(valid())).toBe('valid (agent)');
    pass(13 * day);
    expect(await judge(away)).toBe('valid (last_known)');
    pass(day);
    expect(await judge(away)).toBe('agent_away');
  });

  it('a clock that is set back lengthens no grace', async () => {
    await judge(valid());
    pass(14.5 * day);
    expect(await judge(notFound)).toBe('expired');
    pass(-10 * day);
    expect(await judge(away)).toBe('agent_away');
  });

  it('a confirmation out of the future lengthens no grace', async () => {
    const said = valid();
    await judge(said.verdict === 'valid' ? { ...said, confirmedAt: new Date(today + 30 * day) } : said);
    pass(13 * day);
    expect(await judge(away)).toBe('valid (last_known)');
    pass(day);
    expect(await judge(away)).toBe('agent_away');
  });

  it('the license is answered as it was', async () => {
    await judge(valid());
    expect(await new LastKnown({ file }).judge(key, away)).toEqual({
      verdict: 'valid',
      license,
      source: 'last_known',
      freshness: 'grace',
      confirmedAt: new Date(today),
      graceUntil: new Date(today + 14 * day),
      pending: 0,
    });
  });

  it('of a key that was never valid nothing is known', async () => {
    expect(await judge(away)).toBe('agent_away');
    expect(await judge(notFound)).toBe('not_found');
  });
});

describe('what revokes a key', () => {
  it('is that it was disabled, at once and for good', async () => {
    await judge(valid());
    expect(await judge(disabled)).toBe('disabled');
    expect(await judge(away)).toBe('disabled');
  });

  it('is that it is unknown when that is said again a day later', async () => {
    await judge(valid());
    expect(await judge(notFound)).toBe('valid (last_known)');
    pass(day - 1);
    expect(await judge(notFound)).toBe('valid (last_known)');
    pass(1);
    expect(await judge(notFound)).toBe('not_found');
    expect(await judge(away)).toBe('not_found');
    expect(await judge(notFound)).toBe('not_found');
  });

  it('is not that it is unknown on two days with an answer in between', async () => {
    await judge(valid());
    await judge(notFound);
    pass(day / 2);
    await judge(valid());
    pass(day / 2);
    expect(await judge(notFound)).toBe('valid (last_known)');
  });

  it('is no silence, however long: that only ends the grace', async () => {
    await judge(valid());
    pass(30 * day);
    expect(await judge(away)).toBe('agent_away');
    expect(await judge(notFound)).toBe('expired');
    expect(await judge(valid())).toBe('valid (agent)');
  });

  it('is taken back by the agent alone', async () => {
    await judge(disabled);
    expect(await judge(away)).toBe('disabled');
    expect(await judge(valid())).toBe('valid (agent)');
    expect(await judge(away)).toBe('valid (last_known)');
  });
});

describe('the file', () => {
  it('is for this user alone, and has no license key in it', async () => {
    await judge(valid());
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(readFileSync(file, 'utf8')).not.toContain(key);
  });

  it.each([
    '',
    '{',
    '[]',
    '{"version":2,"keys":{}}',
    '{"version":1}',
    '{"version":1,"latest":"now","keys":{}}',
    '{"version":1,"latest":1,"keys":{"a":{"verdict":"valid"}}}',
  ])('counts as empty when it is %j, and is written anew', async (text) => {
    await judge(valid());
    writeFileSync(file, text);
    expect(await judge(away)).toBe('agent_away');
    await judge(valid());
    expect(await judge(away)).toBe('valid (last_known)');
  });

  it('that cannot be written stands in nobody’s way', async () => {
    writeFileSync(join(directory.path, 'made'), 'no directory');
    expect(await judge(valid())).toBe('valid (agent)');
  });

  it('that cannot be replaced leaves nothing beside it', async () => {
    mkdirSync(file, { recursive: true });
    expect(await judge(valid())).toBe('valid (agent)');
    expect(readdirSync(dirname(file))).toEqual([basename(file)]);
  });

  it('is written once for many verdicts of one hour', async () => {
    const lastKnown = new LastKnown({ file });
    await lastKnown.judge(key, valid());
    const { mtimeNs, ino } = statSync(file, { bigint: true });
    pass(day / 48);
    await lastKnown.judge(key, valid());
    expect(statSync(file, { bigint: true })).toMatchObject({ mtimeNs, ino });
    pass(day / 24);
    await lastKnown.judge(key, valid());
    expect(statSync(file, { bigint: true }).ino).not.toBe(ino);
  });

  it('keeps up with confirmations that each are newer by less than an hour', async () => {
    const lastKnown = new LastKnown({ file });
    for (let asked = 0; asked <= 15 * 24; asked += 0.5) {
      await lastKnown.judge(key, valid());
      pass(day / 48);
    }
    expect(await judge(away)).toBe('valid (last_known)');
  });

  it('is tried again where it could not be written', async () => {
    writeFileSync(join(directory.path, 'made'), 'no directory');
    const lastKnown = new LastKnown({ file });
    await lastKnown.judge(key, disabled);
    rmSync(join(directory.path, 'made'));
    await lastKnown.judge(key, disabled);
    expect(await judge(away)).toBe('disabled');
  });

  it('that several processes write has what each heard, and the later word of a key', async () => {
    const [one, other] = [new LastKnown({ file }), new LastKnown({ file })];
    await one.judge('shared', valid());
    await other.judge('shared', valid());
    pass(1);
    await one.judge('shared', disabled);
    expect(await other.judge('shared', away)).toMatchObject({ reason: 'disabled' });
    pass(1);
    await Promise.all([one.judge('first', valid()), one.judge('second', valid())]);
    await other.judge('third', valid());
    const again = new LastKnown({ file });
    for (const name of ['first', 'second', 'third']) {
      expect(await again.judge(name, away)).toMatchObject({ verdict: 'valid' });
    }
    expect(await again.judge('shared', away)).toMatchObject({ reason: 'disabled' });
    pass(1);
    await other.judge('shared', valid());
    expect(await one.judge('shared', away)).toMatchObject({ verdict: 'valid' });
  });

  it('says nothing of the same key of another product', async () => {
    await new LastKnown({ file }, 'one secret').judge(key, valid());
    expect(await new LastKnown({ file }, 'another secret').judge(key, notFound)).toBe(notFound);
    expect((await new LastKnown({ file }, 'one secret').judge(key, away)).verdict).toBe('valid');
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
  ])('says nothing of the same key of another product whose token is in %s', async (_, program) => {
    await using agent = await listen(createServer(answerOneProduct));
    ({ url } = agent);
    expect((await program('token-of-one').verify(key)).verdict).toBe('valid');
    expect(await program('token-of-another').verify(key)).toMatchObject({ reason: 'not_found' });
    url = 'http://127.0.0.1:1';
    expect((await program('token-of-one').verify(key)).verdict).toBe('valid');
  });

  it('keeps the last hundred keys', async () => {
    const lastKnown = new LastKnown({ file });
    for (let count = 0; count <= 100; count += 1) {
      pass(1);
      await lastKnown.judge(`key ${count}`, valid());
    }
    const again = new LastKnown({ file });
    expect((await again.judge('key 0', away)).verdict).toBe('undetermined');
    expect((await again.judge('key 1', away)).verdict).toBe('valid');
  });
});

it.each([
  [{}, 'lastKnown.file'],
  [{ file: '' }, 'lastKnown.file'],
  [{ file: 'last-known.json', graceMs: '14d' }, 'lastKnown.graceMs'],
  [{ file: 'last-known.json', graceMs: Number.NaN }, 'lastKnown.graceMs'],
  [{ file: 'last-known.json', graceMs: -1 }, 'lastKnown.graceMs'],
])('options that make no sense are refused when they are given: %j', (options, named) => {
  const lastKnown = options as LastKnownOptions;
  expect(() => connect({ token: 'token', lastKnown })).toThrow(ConfigurationError);
  expect(() => connect({ token: 'token', lastKnown })).toThrow(named);
});

it('a grace without end has a date all the same', async () => {
  const lastKnown = new LastKnown({ file, graceMs: Infinity });
  await lastKnown.judge(key, valid());
  pass(1_000 * day);
  const judged = await lastKnown.judge(key, away);
  expect(judged).toMatchObject({ verdict: 'valid', source: 'last_known' });
  expect(judged.verdict === 'valid' && judged.graceUntil?.getUTCFullYear()).toBeGreaterThan(4_000);
});
