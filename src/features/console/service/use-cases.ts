import { done, type Result } from '../../../domain/problem/problem.ts';
import type { FeatureUseCases } from '../../../service/audit.ts';
import type { AuthorityTransaction } from '../../../service/tables.ts';
import { pruneSeries, recordSeries } from './series.ts';

export const useCases = { pruneSeries, recordConsoleAct, recordSeries };

type ConsoleUseCases = typeof useCases;

declare module '../../../service/writer.ts' {
  interface UseCases extends ConsoleUseCases {}
}

/** Does nothing but add its audit entry: a person signed in to the console, or out of it. */
function recordConsoleAct(
  _transaction: AuthorityTransaction,
  _command: { act: 'sign_in' | 'refuse' | 'sign_out'; code: string; detail: string },
): Result<null> {
  return done(null);
}

export const audited: FeatureUseCases['audited'] = {
  recordConsoleAct: (_, { act, code, detail }) => ({ act: `console.${act}`, subject: code, detail }),
};
