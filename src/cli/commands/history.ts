import { z } from 'zod';
import { defineFilteredList } from '../client/list.ts';
import type { Command } from '../command.ts';
import { type Cell, instant } from '../format.ts';
import { licenseKeyOperand, readLicenseKey } from '../license-key-operand.ts';
import { licensesPath } from './license-view.ts';

const state = z.object({ uses: z.int(), enabled: z.boolean() });

/** What changed a license, and what it was before and after. */
export interface Change {
  readonly at: string;
  readonly change: string;
  readonly credential: string;
  readonly before: State;
  readonly after: State;
}

interface State {
  readonly uses: number;
  readonly enabled: boolean;
}

export const change: z.ZodType<Change> = z.object({
  at: z.string(),
  change: z.string(),
  credential: z.string(),
  before: state,
  after: state,
});

/** `license history`. */
export const licenseHistory: Command = defineFilteredList(
  {
    path: licensesPath,
    member: 'changes',
    item: change,
    row: changeRow,
  },
  {
    options: (syntax) =>
      syntax
        .positional('key', licenseKeyOperand)
        .example('latchkey license history ABCDE-FGHJK-LMNPQ-RSTUV', 'who counted each use, and when'),
    query: () => ({}),
    within: ({ key }) => `/${encodeURIComponent(readLicenseKey(key))}/history`,
  },
);

/** The cells of a change by the names of their columns. */
export function changeRow({
  at,
  change: what,
  credential,
  before,
  after,
}: Change): Readonly<Record<string, Cell>> {
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

/** Shows only once what stayed as it was. */
function formatStep(before: string | number, after: string | number): string {
  return before === after ? String(after) : `${before} → ${after}`;
}
