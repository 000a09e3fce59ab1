import { z } from 'zod';
import { formatDatetime } from '../../domain/datetime.ts';
import type { HistoryEntry, LicenseState } from '../../domain/history.ts';

export type ChangeObject = {
  at: string;
  change: string;
  credential: string;
  before: LicenseState;
  after: LicenseState;
};

const state: z.ZodType<LicenseState> = z
  .object({ uses: z.int(), enabled: z.boolean() })
  .meta({ id: 'LicenseState' });

const changeObject: z.ZodType<ChangeObject> = z
  .object({
    at: z.iso.datetime({ offset: true }),
    change: z.string(),
    credential: z.string(),
    before: state,
    after: state,
  })
  .meta({ id: 'Change' });

export const changeList: z.ZodType<{ changes: ChangeObject[] }> = z
  .object({
    changes: z.array(changeObject),
  })
  .meta({ id: 'ChangeList' });

export function presentChange({ at, change, credential, before, after }: HistoryEntry): ChangeObject {
  return { at: formatDatetime(at), change, credential, before, after };
}
