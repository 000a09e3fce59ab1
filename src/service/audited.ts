import { formatDatetime } from '../domain/time.ts';
import type { Result } from '../domain/problem/problem.ts';
import type { CommandOf, CommandResult, UseCaseName, UseCases } from './writer.ts';

/** An audit entry never contains a secret or a whole license key. */
export type Audited = { act: string; subject: string; detail?: string };

type ValueOf<Name extends UseCaseName> = CommandResult<Name> extends Result<infer Value> ? Value : never;

/** The audit entry of each use case that a person starts; null: no person has started it. */
export type AuditEntries = {
  [Name in UseCaseName]?: (value: ValueOf<Name>, command: CommandOf<Name>) => Audited | null;
};

/** The use cases of a feature, and their audit entries. */
export type FeatureUseCases = { useCases: Partial<UseCases>; audited: AuditEntries };

/** Until when a replaced secret stays valid. */
export function endOfOld(until: number | null): string {
  return until === null ? '' : `the old one until ${formatDatetime(until)}`;
}
