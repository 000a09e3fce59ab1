import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { dialects } from '../support/stores/dialects.ts';
import { routesOf } from '../../src/http/routes/all.ts';
import { localCalls, offlineCalls, storeCalls, type NamedCall } from '../support/harness/dialect-calls.ts';
import { startDialectHarness, type DialectHarness, type Role } from '../support/harness/dialect-harness.ts';

/** The recorded responses of a role in a dialect: each a line with the name of the request, the status, the headers and the body. */
const folder = join(import.meta.dirname, 'answers');

/** Values that differ from run to run, and their placeholders. */
const varying: readonly (readonly [RegExp, string])[] = [
  [/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, '<uuid>'],
  [/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:\+00:00|Z)/g, '<datetime>'],
  [/lk_[a-z]+_[\w-]{20,}/g, '<secret>'],
  [/"last_used_at":(?:null|"<datetime>")/g, '"last_used_at":"<varies>"'],
  [/^(Date|Age|Latchkey-Pending|Content-Disposition): .*/i, '$1: <varies>'],
];

/** Responses with long, varying bodies: only the status and the headers are recorded. */
const untold = /^(?:\/statusz|\/metrics|\/openapi\.json|\/admin\/v1\/(?:backup|licenses|tokens))$/;

function told({ what }: NamedCall, [status = '', ...lines]: string[]): string[] {
  const scrubbed = lines.map((line) =>
    varying.reduce((text, [pattern, by]) => text.replace(pattern, by), line),
  );
  if (!untold.test(what)) return [status, ...scrubbed];
  return [status, ...scrubbed.slice(0, -2).filter((line) => !/^content-length/i.test(line))];
}

async function play(harness: DialectHarness, calls: readonly NamedCall[]): Promise<string> {
  let answers = '';
  for (const call of calls)
    answers += `${JSON.stringify([call.what, ...told(call, await harness.send(call))])}\n`;
  return answers;
}

/** The responses to software; for an agent, also those while its upstream is down. */
async function playSoftware(harness: DialectHarness, role: Role): Promise<string> {
  const answers = await play(harness, storeCalls(harness.credentials));
  if (role === 'authority') return answers;
  await harness.closeUpstream();
  return answers + (await play(harness, offlineCalls(harness.credentials)));
}

const roles = ['authority', 'agent'] as const;
const dialectNames = ['specification', 'payhip'] as const;
const cases = roles.flatMap((role) => dialectNames.map((dialect) => ({ role, dialect })));

describe.each(roles)('an %s', (role) => {
  test('the routes for people and probes answer the same in every dialect', async () => {
    const playLocal = async (dialect: string): Promise<string> => {
      await using harness = await startDialectHarness(role, 'tcp', { dialect });
      // An agent that has just started may not know yet whether its upstream is up.
      const isReady = { method: 'GET', path: '/readyz?require=fresh' };
      await expect.poll(async () => (await harness.send(isReady))[0]).toBe('200');
      const answers = await play(harness, localCalls(harness.credentials));
      // Every route takes the API key under the name of the dialect, too.
      return answers.replaceAll('payhip-api-key, ', '');
    };
    expect(await playLocal('payhip')).toBe(await playLocal('specification'));
  });
});

describe.each(cases)('an $role in the dialect $dialect', ({ role, dialect }) => {
  test.each(['tcp', 'socket'] as const)(
    'the responses over %s are the recorded responses',
    async (listener) => {
      await using harness = await startDialectHarness(role, listener, { dialect });
      const file = join(folder, `${role}-${dialect}.jsonl`);
      await expect(await playSoftware(harness, role)).toMatchFileSnapshot(file);
    },
  );
});

test("the recorded calls include every route of the store's API", async () => {
  const credentials = { apiKey: 'a', secret: 's', token: 't', verifyToken: 'v' };
  const asked = [...storeCalls(credentials), ...offlineCalls(credentials)].map(({ method, path }) => ({
    method,
    path: path.split('?', 1)[0] ?? '',
  }));
  const missing = (await routesOf(dialects.payhip)).filter(
    (route) =>
      route.path.startsWith('/api/') &&
      !asked.some(
        ({ method, path }) =>
          method === route.method && new RegExp(`^${route.path.replaceAll(/:\w+/g, '[^/]+')}$`).test(path),
      ),
  );
  expect(missing.map(({ method, path }) => `${method} ${path}`)).toEqual([]);
});
