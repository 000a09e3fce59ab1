import { expect, test } from 'vitest';
import { transactionFault } from '../../../src/store/postgres/faults.ts';

test.each([
  'Connection terminated unexpectedly',
  'Client was closed and is not queryable',
  'timeout exceeded when trying to connect',
  'Received unexpected commandComplete message from backend.',
])('the database is away where the driver gives a connection up: %s', (message) => {
  expect(transactionFault(new Error(message))).toBe('away');
});

test('an error of this program is not taken for a database that is away', () => {
  expect(transactionFault(new TypeError('x is not a function'))).toBe('error');
});
