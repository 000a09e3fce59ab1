import type { CommandOf } from '../../../src/service/writer.ts';
import { at } from '../../support/builders/store-builders.ts';

type OfConsole = 'recordConsoleAct' | 'recordSeries' | 'pruneSeries';

/** A command for each use case of this feature (support/app/authority-commands.ts). */
export const commands: { [Name in OfConsole]: CommandOf<Name> } = {
  recordConsoleAct: { act: 'sign_in', code: 'ABC-DEF', detail: 'may only read' },
  recordSeries: {
    at,
    values: { verifies: 1, uses: 1, pending: null, oldestAgeS: null, upstream: null },
  },
  pruneSeries: { now: at, verifiedNow: at },
};
