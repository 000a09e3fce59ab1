import { expect, test } from 'vitest';
import { StorageError } from '../../../../src/service/ports.ts';
import {
  isAnswered,
  isSurelyUndone,
  sqlState,
  storageErrorOf,
  transactionFault,
} from '../../../../src/features/postgres/store/faults.ts';

test.each(['EPIPE', 'ECONNRESET', 'EHOSTUNREACH'])(
  'a connection that the system ends with %s is away, and tells nothing of a commit',
  (code) => {
    const error = Object.assign(new Error(`write ${code}`), { code, syscall: 'write' });
    expect(sqlState(error)).toBeNull();
    expect(transactionFault(error)).toBe('away');
    expect(storageErrorOf(error)).toEqual(new StorageError('unavailable', error));
    expect(isAnswered(error)).toBe(false);
    expect(isSurelyUndone(error)).toBe(false);
  },
);

test('what the server has refused was answered', () => {
  const error = Object.assign(new Error('division by zero'), { code: '22012' });
  expect(sqlState(error)).toBe('22012');
  expect(transactionFault(error)).toBe('error');
  expect(isAnswered(error)).toBe(true);
});

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

test.each(['53100', '58030', 'XX000'])('a server that ends with %s may have committed before', (code) => {
  const panic = Object.assign(new Error('could not write to its log'), { code, severity: 'PANIC' });
  expect([isAnswered(panic), isSurelyUndone(panic)]).toEqual([false, false]);
  const error = Object.assign(new Error('could not extend a file'), { code, severity: 'ERROR' });
  expect(isAnswered(error)).toBe(true);
});
