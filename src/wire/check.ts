import type { Level } from '../domain/finding.ts';
import { counted } from '../domain/text.ts';
import type { StatusObject } from './status.ts';

/**
 * One thing that can be wrong at a daemon, as its status shows it. The doctor, `latchkey status` and the overview of
 * the console report it; the doctor alone reports what is `ok`. Texts are parts of a line: no capital, no full stop.
 */
export type Check = {
  level: Level | ((status: StatusObject) => Level);
  /** What is wrong, once for each thing with which it is. `maxPending`: `sync.max_pending`; null: not known. */
  find: (
    status: StatusObject,
    maxPending: number | null,
  ) => string | readonly string[] | false | null | undefined;
  advice: string | null;
  /** A command that helps, without `latchkey`. */
  command?: string;
  /** The page of the console about it. */
  page?: string;
  /** The doctor examines it itself, and finds more. */
  isExamined?: boolean;
};

/** Checks by their codes, which are short, stable names. */
export type Checks = Readonly<Record<string, Check>>;

export type Remedy = Pick<Check, 'advice' | 'command' | 'page'>;

/** The remedy for what the doctor explains. */
export const askDoctor = { advice: 'the doctor says what is wrong', command: 'doctor', page: 'doctor' };

/** For example `2 keys are lost`; null: none is. */
export function some(count: number | undefined, one: string, many: string): string | null {
  return count === undefined || count === 0 ? null : counted(count, one, many);
}

/** How long it is until a datetime by the clock of the daemon, in ms; NaN without a datetime. */
export function msUntil(at: string | null | undefined, { clock }: StatusObject): number {
  return Date.parse(at ?? '') - Date.parse(clock.now);
}

type EndOf = (status: StatusObject) => string | undefined;
type Ending = Remedy & { what: string; endOf: EndOf; ended: string; soonMs: number };

/** The checks of something that ends: whether it has ended, and whether it will within `soonMs`. */
export function endChecks(code: string, { what, endOf, ended, soonMs, ...remedy }: Ending): Checks {
  const leftMs = (status: StatusObject): number => msUntil(endOf(status), status);
  return {
    [`${code}_ended`]: {
      level: 'fail',
      find: (status) => leftMs(status) <= 0 && `${what} ended on ${endOf(status)}: ${ended}`,
      ...remedy,
      isExamined: true,
    },
    [`${code}_ends_soon`]: {
      level: 'warn',
      find: (status) => leftMs(status) > 0 && leftMs(status) < soonMs && `${what} ends on ${endOf(status)}`,
      ...remedy,
      isExamined: true,
    },
  };
}
