import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { ProblemError } from '../../src/client/index.ts';
import type { ProblemCode } from '../../src/client/error.ts';
import { problems } from '../../src/domain/problem/problem-table.ts';

it('the type ProblemCode of the client lists every problem of the server', () => {
  const source = readFileSync(new URL('../../src/client/error.ts', import.meta.url), 'utf8');
  const [union = ''] = /^export type ProblemCode =[^;]*;/m.exec(source) ?? [];
  expect([...union.matchAll(/'(\w+)'/g)].map(([, code]) => code)).toEqual(Object.keys(problems));
});

it('exactly the problems that mean "not now" are temporary errors', () => {
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
    'clock_suspect',
    'draining',
    'idempotency_key_in_use',
    'internal_error',
    'leases_not_set_up',
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
