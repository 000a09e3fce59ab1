import { expect, test } from 'vitest';
import { hashLicenseKeys, makeLogOn, OperationLog } from '../../src/daemon/log.ts';
import type { Log } from '../../src/service/ports.ts';
import { traced } from '../../src/domain/outbox/trace.ts';
import { buildOperation } from '../support/builders/operation-builders.ts';

/** The line that the log writes for these fields. */
function lineOf(fields: Record<string, unknown>): Record<string, unknown> {
  let line = '';
  makeLogOn({ write: (text) => (line = text) }, 'info').info(fields, 'a line');
  return JSON.parse(line) as Record<string, unknown>;
}

test('A line has its level, its time and its fields, without those that are undefined.', () => {
  expect(lineOf({ status: 404, code: undefined, requestId: 'r', durationMs: 1 })).toEqual({
    level: 'info',
    time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    status: 404,
    request_id: 'r',
    duration_ms: 1,
    msg: 'a line',
  });
});

test('The log withholds license keys and secrets, whatever part of the program logs them.', () => {
  const secrets = {
    licenseKey: 'CANARY',
    license_key: 'CANARY',
    secret: 'CANARY',
    token: 'CANARY',
    headers: { authorization: 'CANARY' },
    body: { license_key: 'CANARY' },
  };
  const line = lineOf({ status: 404, ...secrets });
  expect(line).toMatchObject({ status: 404, license_key: '(withheld)', headers: '(withheld)' });
  expect(JSON.stringify(line)).not.toContain('CANARY');
});

test('The log writes type, code, message, stack and causes of an error, and none of its other properties.', () => {
  const cause = Object.assign(new RangeError('too far'), { input: 'CANARY' });
  const error = Object.assign(new Error('failed', { cause }), { code: 'EIO', request: { secret: 'CANARY' } });
  const { err } = lineOf({ err: error });
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
  expect(JSON.stringify(lineOf({ err: error }))).not.toContain('CANARY');
  expect(lineOf({ err: 'CANARY' })).toMatchObject({ err: { type: 'string' } });
});

test('The log ends a cycle of causes.', () => {
  const error = new Error('round');
  error.cause = error;
  expect(JSON.stringify(lineOf({ err: error })).match(/"message"/g)).toHaveLength(4);
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

const logged: [string, Record<string, unknown>][] = [];
const nothing = (): void => undefined;
const recordingLog: Log = {
  debug: nothing,
  info: (fields, message) => void logged.push([message, fields]),
  warn: nothing,
  error: nothing,
};

test('The steps of a start are logged in order after the log can hash keys, even if no label can be read.', () => {
  const tokens = {
    get: () => {
      throw new Error('the database is damaged');
    },
  };
  const operationLog = new OperationLog({ tokens } as unknown as ConstructorParameters<
    typeof OperationLog
  >[0]);
  const operation = buildOperation({ id: 'a', credential: 'token:t', requestId: 'r' });
  operationLog.add([traced('uncertain', operation)]);
  expect(logged).toEqual([]);
  operationLog.begin(recordingLog);
  operationLog.add([traced('held', { ...operation, amount: 5, lastError: 'why' })]);
  const common = {
    operation: 'a',
    kind: 'usage',
    licenseKey: 'KEY-1',
    credential: 'token:t',
    request_id: 'r',
  };
  expect(logged).toEqual([
    ['uncertain', { ...common, state: 'pending' }],
    ['held', { ...common, amount: 5, state: 'pending', error: 'why' }],
  ]);
});
