import { expect, test } from 'vitest';
import { hashLicenseKeys, allowedFields } from '../../src/daemon/log.ts';
import type { Log } from '../../src/service/ports.ts';

test('The log withholds a field that is not in the list of fields.', () => {
  expect(allowedFields({ status: 404, headers: { authorization: 'CANARY' }, licenseKey: 'CANARY' })).toEqual({
    status: 404,
    headers: '(withheld)',
    licenseKey: '(withheld)',
  });
});

test('The log writes the fields of products, waiting changes and the place of a key.', () => {
  const fields = { product: 'PRX1', before: 'PRD1', operations: 3, at: 'host:/var/lib/latchkey/api.key' };
  expect(allowedFields(fields)).toEqual(fields);
});

test('The log writes type, code, message, stack and causes of an error, and none of its other properties.', () => {
  const cause = Object.assign(new RangeError('too far'), { input: 'CANARY' });
  const error = Object.assign(new Error('failed', { cause }), { code: 'EIO', request: { secret: 'CANARY' } });
  const { err } = allowedFields({ err: error });
  expect(err).toEqual({
    type: 'Error',
    code: 'EIO',
    message: 'failed',
    stack: expect.stringMatching(/^\s+at /),
    cause: { type: 'RangeError', message: 'too far', stack: expect.stringMatching(/^\s+at /) },
  });
  expect(JSON.stringify(err)).not.toContain('CANARY');
});

test('The log omits the message of a SyntaxError, which quotes the text.', () => {
  let error: unknown;
  try {
    JSON.parse('{"secret": CANARY}');
  } catch (thrown) {
    error = thrown;
  }
  expect(String(error)).toContain('CANARY');
  expect(JSON.stringify(allowedFields({ err: error }))).not.toContain('CANARY');
  expect(allowedFields({ err: 'CANARY' })).toEqual({ err: { type: 'string' } });
});

test('The log ends a cycle of causes.', () => {
  const error = new Error('round');
  error.cause = error;
  expect(JSON.stringify(allowedFields({ err: error })).match(/"message"/g)).toHaveLength(4);
});

test('The log replaces a license key by a short hash with the secret of the store.', () => {
  const lines: Record<string, unknown>[] = [];
  const keep = (fields: Record<string, unknown>): void => void lines.push(fields);
  const log: Log = { debug: keep, info: keep, warn: keep, error: keep };
  const ours = hashLicenseKeys(log, 'secret of a store');
  const theirs = hashLicenseKeys(log, 'secret of another');
  for (const level of ['debug', 'info', 'warn', 'error'] as const) {
    ours[level]({ licenseKey: 'CANARY', got: 1 }, '');
  }
  ours.info({ licenseKey: 'CANARY-2' }, '');
  theirs.info({ licenseKey: 'CANARY' }, '');
  ours.info({ got: 1 }, '');
  const [first, ...rest] = lines.map(({ license }) => license);
  expect(first).toMatch(/^[0-9a-f]{12}$/);
  expect(rest.slice(0, 3)).toEqual([first, first, first]);
  expect(new Set(lines.slice(3, 6).map(({ license }) => license)).size).toBe(3);
  expect(lines.at(-1)).toEqual({ got: 1 });
  expect(JSON.stringify(lines)).not.toContain('CANARY');
});
