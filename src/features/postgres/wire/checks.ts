import { askDoctor, type Check, type Checks } from '../../../wire/check.ts';
import type { StatusObject } from '../../../wire/status.ts';

/** What a process sees of a database on another machine. */
export const databaseChecks: Checks = {
  storage_unavailable: inState('unavailable', 'the database cannot be reached'),
  storage_slow: inState('slow', 'the database does not answer in time'),
  storage_read_only: inState(
    'read_only',
    'the database is read-only: changes are refused, verify keeps working',
  ),
  storage_refused: inState('refused', 'this process cannot use the database'),
};

function inState(state: StatusObject['storage'], what: string): Check {
  return { level: 'fail', find: ({ storage }) => storage === state && what, ...askDoctor };
}
