import { defineList } from '../../client/request.ts';
import { type Cell, instant } from '../../format.ts';
import { licenseKeyPositional, readLicenseKey } from '../../values.ts';
import { licensesPath } from './license.ts';
import { type ChangeObject, changeObject } from '../../../wire/license.ts';

export const command = defineList({
  command: 'history <key..>',
  describe: 'List the changes of a license key',
  builder: { key: licenseKeyPositional },
  examples: [['latchkey license history ABCDE-FGHJK-LMNPQ-RSTUV', 'who counted each use, and when']],
  list: { path: licensesPath, member: 'changes', item: changeObject, row: changeRow },
  within: ({ key }) => `/${encodeURIComponent(readLicenseKey(key))}/history`,
});

/** The cells of a change by the names of their columns. */
export function changeRow({
  at,
  change: what,
  credential,
  before,
  after,
}: ChangeObject): Record<string, Cell> {
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
