import { z } from 'zod';
import { defineFilteredList } from '../client/list.ts';
import { type Command, operand } from '../command.ts';

const state = z.object({ uses: z.int(), enabled: z.boolean() });

const change = z.object({
  at: z.string(),
  change: z.string(),
  credential: z.string(),
  before: state,
  after: state,
});

/** `license history`. */
export const licenseHistory: Command = defineFilteredList(
  {
    path: '/admin/v1/licenses',
    member: 'changes',
    item: change,
    row: ({ at, change: what, credential, before, after }) => ({
      at,
      change: what,
      'by credential': credential,
      uses: formatStep(before.uses, after.uses),
      state: formatStep(formatEnabled(before.enabled), formatEnabled(after.enabled)),
    }),
  },
  {
    options: (yargs) => yargs.positional('key', operand('License key')),
    query: () => ({}),
    within: ({ key }) => `/${encodeURIComponent(key)}/history`,
  },
);

function formatEnabled(enabled: boolean): string {
  return enabled ? 'valid' : 'disabled';
}

/** Shows only once what stayed as it was. */
function formatStep(before: string | number, after: string | number): string {
  return before === after ? String(after) : `${before} → ${after}`;
}
