import { join } from 'node:path';
import { format, resolveConfig } from 'prettier';
import { describe, expect, test } from 'vitest';
import { offlineCalls, storeCalls, type NamedCall } from '../support/dialect-calls.ts';
import { setDialectStage, type DialectStage } from '../support/dialect-stage.ts';

/** The answers that a role gives in a dialect, by the names of the calls. */
const folder = join(import.meta.dirname, 'answers');

/** What differs from run to run, and what stands for it. */
const varying: readonly (readonly [RegExp, string])[] = [
  [/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, '<uuid>'],
  [/"[0-9a-f]{8}-[0-9a-f]{4}"/g, '"<request>"'],
  [/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:\+00:00|Z)/g, '<datetime>'],
  [/lk_[a-z]+_[\w-]{20,}/g, '<secret>'],
  [/^(Date|Age|Latchkey-Pending|Content-Disposition): .*/i, '$1: <varies>'],
];

/** Long bodies with many numbers of their own: only that there is one. */
const untold = /^(?:\/statusz|\/metrics|\/openapi\.json|\/admin\/v1\/(?:backup|licenses))$/;

function told({ what }: NamedCall, [status = '', ...lines]: string[]): string[] {
  const scrubbed = lines.map((line) =>
    varying.reduce((text, [pattern, by]) => text.replace(pattern, by), line),
  );
  if (!untold.test(what)) return [status, ...scrubbed];
  return [status, ...scrubbed.slice(0, -2).filter((line) => !/^content-length/i.test(line))];
}

async function play(stage: DialectStage, role: 'authority' | 'agent'): Promise<Record<string, string[]>> {
  const answers: Record<string, string[]> = {};
  const ask = async (calls: readonly NamedCall[]): Promise<void> => {
    for (const call of calls) answers[call.what] = told(call, await stage.send(call));
  };
  await ask(storeCalls(stage.credentials));
  if (role === 'agent') {
    await stage.closeUpstream();
    await ask(offlineCalls(stage.credentials));
  }
  return answers;
}

const roles = ['authority', 'agent'] as const;
const dialectNames = ['specification', 'payhip'] as const;
const cases = roles.flatMap((role) => dialectNames.map((dialect) => ({ role, dialect })));

describe.each(cases)('an $role in the dialect $dialect', ({ role, dialect }) => {
  test.each(['tcp', 'socket'] as const)('answers as written down over %s', async (listener) => {
    await using stage = await setDialectStage(role, listener, { dialect });
    const file = join(folder, `${role}-${dialect}.json`);
    const text = await format(JSON.stringify(await play(stage, role)), {
      ...(await resolveConfig(file)),
      parser: 'json',
    });
    await expect(text).toMatchFileSnapshot(file);
  });
});
