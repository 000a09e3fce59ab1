import { expect, test } from 'vitest';
import { exitCode } from '../../src/cli/exit-code.ts';
import { operationStates } from '../../src/domain/outbox/operation.ts';
import { problemCauses } from '../../src/domain/problem/problem-causes.ts';
import { problems } from '../../src/domain/problem/problem-table.ts';
import { latchkey } from '../support/process/command-line.ts';

test('explain prints what a code means, why it happens, and what to do', async () => {
  const { code, out } = await latchkey('explain', 'storage_full');
  const { title, remedy } = problems.storage_full;
  expect([code, out]).toEqual([
    0,
    `storage_full (HTTP 507): ${title}\n\nWhy: ${problemCauses.storage_full}\n\nWhat to do: ${remedy}\n`,
  ]);
});

test.each(['urn:latchkey:problem:license_not_found', 'LICENSE_NOT_FOUND', ' license-not-found '])(
  'explain finds a code as people copy it: %s',
  async (said) => {
    const { code, out } = await latchkey('explain', said);
    expect([code, out.split(' ', 1)]).toEqual([0, ['license_not_found']]);
  },
);

test('explain with an HTTP status lists the problems with this status', async () => {
  const { out } = await latchkey('explain', '503', '--json');
  const { explanations } = JSON.parse(out) as { explanations: { name: string; status: number }[] };
  const expected = Object.entries(problems).filter(([, { status }]) => status === 503);
  expect(explanations.map(({ name }) => name)).toEqual(expected.map(([name]) => name));
});

test('explain without a code lists every problem, state, freshness, reason of /readyz and exit code', async () => {
  const { out } = await latchkey('explain', '--json');
  const { explanations } = JSON.parse(out) as { explanations: { kind: string; name: string }[] };
  const of = (kind: string): string[] =>
    explanations.filter((each) => each.kind === kind).map(({ name }) => name);
  expect(of('problem')).toEqual(Object.keys(problems));
  expect(of('state').toSorted()).toEqual([...operationStates, 'held'].toSorted());
  expect(of('freshness')).toEqual(['fresh', 'stale', 'grace', 'expired', 'authoritative', 'provisional']);
  expect(of('readiness')).toEqual(['store_damaged', 'upstream_down', 'upstream_paused', 'upstream_unknown']);
  expect(of('status')).toEqual(['paused_products', 'coupons_paused']);
  expect(of('exit_code').map(Number)).toEqual(expect.arrayContaining(Object.values(exitCode)));
  const shown = await latchkey('explain');
  expect(shown.out.split('\n').filter((line) => line !== '')).toHaveLength(explanations.length + 1);
});

test.each([
  ['uncertain', /^uncertain \(a change\): .*\n\nWhat to do: /],
  ['held', /^held \(a change\): .*\n\nWhat to do: /],
  ['grace', /^grace \(Latchkey-Freshness\): .*\n\nWhat to do: /],
  ['store_damaged', /^store_damaged \(\/readyz\): .*\n\nWhat to do: /],
  ['paused_products', /^paused_products \(\/statusz\): .*\n\nWhat to do: .*sync resume/],
  ['78', /^78 \(exit code\): .*\n\nWhat to do: /],
  ['0', /^0 \(exit code\): .*\n$/],
])('explain explains %s', async (word, text) => {
  expect(await latchkey('explain', word)).toMatchObject({ code: 0, out: expect.stringMatching(text) });
});

test('explain --json with one code prints one object', async () => {
  const { out } = await latchkey('explain', 'rate_limited', '--json');
  expect(JSON.parse(out)).toEqual({
    kind: 'problem',
    name: 'rate_limited',
    status: 429,
    type: 'urn:latchkey:problem:rate_limited',
    title: problems.rate_limited.title,
    cause: problemCauses.rate_limited,
    remedy: problems.rate_limited.remedy,
  });
});

test.each([
  ['storage_ful', 'Did you mean storage_full?'],
  ['urn:latchkey:problem:licence_not_found', 'Did you mean license_not_found?'],
  ['key_taken', 'Did you mean license_key_taken or product_key_taken?'],
  ['xyzzy', 'All: latchkey explain'],
  ['urn:latchkey:problem:', 'All: latchkey explain'],
])('explain suggests a code for %s', async (word, hint) => {
  const { code, out, err } = await latchkey('explain', word);
  expect([code, out]).toEqual([exitCode.usage, '']);
  expect(err).toContain(`Unknown code: ${word}. ${hint}`);
});
