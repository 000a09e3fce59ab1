import { expect, test, onTestFinished, vi } from 'vitest';
import { pino } from 'pino';
import { hashLicenseKeys, allowedFields, OperationLog, BufferedLines } from '../../src/daemon/log.ts';
import type { Log } from '../../src/service/ports.ts';
import { traced } from '../../src/domain/outbox/trace.ts';
import { buildOperation } from '../support/builders/operation-builders.ts';

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

test('The log writes why leases cannot be signed, and which signing key ends soon.', () => {
  const fields = {
    directory: '/state/signing',
    faults: ['statement.jwt is not valid.'],
    kid: 'k',
    until: 'u',
  };
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
  operationLog.add([traced('held', { ...operation, lastError: 'why' })]);
  const common = {
    operation: 'a',
    kind: 'usage',
    licenseKey: 'KEY-1',
    credential: 'token:t',
    request_id: 'r',
  };
  expect(logged).toEqual([
    ['uncertain', { ...common, state: 'pending' }],
    ['held', { ...common, state: 'pending', error: 'why' }],
  ]);
});

test('Buffered lines are written together, in order, and each once.', () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const written: string[] = [];
  const lines = new BufferedLines({ write: (text) => written.push(text) });
  lines.write('a\n');
  lines.write('b\n');
  expect(written).toEqual([]);
  vi.advanceTimersByTime(5);
  expect(written).toEqual(['a\nb\n']);
  lines.write('c\n');
  lines.flushSync();
  vi.advanceTimersByTime(5);
  expect(written).toEqual(['a\nb\n', 'c\n']);
});

test('The flush of pino writes the buffered lines at once.', () => {
  const written: string[] = [];
  const log = pino(
    { base: null, timestamp: false },
    new BufferedLines({ write: (text) => written.push(text) }),
  );
  log.info('the store is migrated');
  expect(written).toEqual([]);
  log.flush();
  expect(written).toEqual(['{"level":30,"msg":"the store is migrated"}\n']);
});
