import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { ProblemError } from '../../src/client/index.ts';
import type { ProblemCode } from '../../src/client/problem-code.ts';
import { problems } from '../../src/domain/problem/problem-table.ts';

it('the client knows every problem by its code', () => {
  const source = readFileSync(new URL('../../src/client/problem-code.ts', import.meta.url), 'utf8');
  expect([...source.matchAll(/'(\w+)'/g)].map(([, code]) => code)).toEqual(Object.keys(problems));
});

it('a program may try again what only says "not now"', () => {
  const about = {
    status: 0,
    title: '',
    detail: '',
    requestId: null,
    faults: [],
    reasons: [],
    retryAfterMs: null,
  };
  const temporary = (Object.keys(problems) as ProblemCode[]).filter(
    (code) => new ProblemError({ code, ...about }).isTemporary,
  );
  expect(temporary.toSorted()).toEqual([
    'draining',
    'idempotency_key_in_use',
    'internal_error',
    'outcome_unknown',
    'rate_limited',
    'request_timeout',
    'starting',
    'storage_failed',
    'storage_full',
    'storage_unavailable',
    'upstream_unreachable',
    'verdict_expired',
  ]);
});
