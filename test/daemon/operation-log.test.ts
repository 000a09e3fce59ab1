import { expect, test } from 'vitest';
import { OperationLog } from '../../src/daemon/log.ts';
import { traced } from '../../src/domain/outbox/operation.ts';
import type { Log } from '../../src/service/ports.ts';
import { buildOperation } from '../support/builders/operation-builders.ts';

const logged: [string, Record<string, unknown>][] = [];
const nothing = (): void => undefined;
const log: Log = {
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
  operationLog.begin(log);
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
