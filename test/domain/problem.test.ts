import { describe, expect, it } from 'vitest';
import { done, problems, refuse, refuseParameters, type ProblemCode } from '../../src/domain/problem.ts';

/** The codes that the contract names for each status (contract.md, sections 3, 4 and 5). */
const contract: Record<number, ProblemCode[]> = {
  400: ['malformed_body', 'duplicate_parameter', 'malformed_request', 'idempotency_key_malformed'],
  401: ['credentials_missing', 'credentials_invalid'],
  403: ['scope_missing', 'origin_forbidden', 'host_forbidden'],
  404: ['license_not_found', 'coupon_not_found', 'redemption_not_found', 'route_not_found'],
  405: ['method_not_allowed'],
  408: ['request_timeout'],
  409: [
    'coupon_code_taken',
    'license_key_taken',
    'coupon_not_redeemable',
    'not_the_authority',
    'idempotency_key_in_use',
    'backup_running',
  ],
  413: ['body_too_large'],
  415: ['unsupported_media_type'],
  422: [
    'parameters_invalid',
    'product_is_recurring',
    'order_reused',
    'import_rejected',
    'idempotency_key_reused',
  ],
  429: ['rate_limited'],
  431: ['headers_too_large'],
  501: ['coupons_not_configured'],
  503: ['upstream_unreachable', 'verdict_expired', 'starting', 'draining', 'storage_failed'],
  507: ['storage_full'],
};

describe('the table of problems', () => {
  it('holds every code of the contract under its status', () => {
    const named = Object.entries(contract).flatMap(([status, codes]) =>
      codes.map((code) => [code, Number(status)] as const),
    );
    expect(named.map(([code]) => [code, problems[code].status])).toEqual(named);
  });

  it('gives each code an error status and a title of its own', () => {
    const all = Object.values(problems);
    expect(all.filter(({ status }) => status < 400 || status > 599)).toEqual([]);
    expect(new Set(all.map(({ title }) => title)).size).toBe(all.length);
    expect(all.filter(({ title }) => title === '' || title.endsWith('.'))).toEqual([]);
  });
});

describe('a result', () => {
  it('is the value, or the problem that stands in its way', () => {
    expect(done(3)).toEqual({ ok: true, value: 3 });
    expect(refuse('rate_limited', 'Slowly.', { retryAfterS: 2 })).toEqual({
      ok: false,
      problem: { code: 'rate_limited', detail: 'Slowly.', retryAfterS: 2 },
    });
  });

  it('names every parameter that is not valid', () => {
    const errors = [
      { parameter: 'code', code: 'required', detail: 'code is required.' },
      { parameter: 'amount_off', code: 'excluded', detail: 'not both.' },
    ];
    expect(refuseParameters(errors)).toEqual({
      ok: false,
      problem: { code: 'parameters_invalid', detail: 'Not valid: code, amount_off.', errors },
    });
  });
});
