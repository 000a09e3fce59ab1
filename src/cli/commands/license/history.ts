import { z } from 'zod';
import { defineList } from '../../client/list.ts';
import { type Cell, instant } from '../../format.ts';
import { licenseKeyPositional, readLicenseKey } from '../../values.ts';
import { licensesPath } from './license.ts';

const state = z.object({ uses: z.int(), enabled: z.boolean() });

/** A change of a license, with the states before and after it. */
export const change = z.object({
  at: z.string(),
  change: z.string(),
  credential: z.string(),
  before: state,
  after: state,
});

export type Change = z.infer<typeof change>;

export const command = defineList({
  command: 'history <key..>',
  describe: 'List the changes of a license key',
  builder: { key: licenseKeyPositional },
  examples: [['latchkey license history ABCDE-FGHJK-LMNPQ-RSTUV', 'who counted each use, and when']],
  list: { path: licensesPath, member: 'changes', item: change, row: changeRow },
  within: ({ key }) => `/${encodeURIComponent(readLicenseKey(key))}/history`,
});

/** The cells of a change by the names of their columns. */
export function changeRow({ at, change: what, credential, before, after }: Change): Record<string, Cell> {
  return {
    at: instant(at),
    change: what,
    'by credential': credential,
    uses: formatStep(before.uses, after.uses),
    state: formatStep(formatEnabled(before.enabled), formatEnabled(after.enabled)),
  };
}

function formatEnabled(enabled: boolean): string {
  return enabled ? 'valid' : 'disabled';
}

function formatStep(before: string | number, after: string | number): string {
  return before === after ? String(after) : `${before} → ${after}`;
}
