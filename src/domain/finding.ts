/** How serious a finding is. */
export type Level = 'ok' | 'warn' | 'fail';

/** The result of one check; `advice` says what to do about a problem. */
export type Finding = { level: Level; what: string; advice: string | null };

export function ok(what: string): Finding {
  return { level: 'ok', what, advice: null };
}

export function warn(what: string, advice: string): Finding {
  return { level: 'warn', what, advice };
}

export function fail(what: string, advice: string): Finding {
  return { level: 'fail', what, advice };
}

/** Writes the command line of a command that is suggested to the user. */
export type Hint = (words: string) => string;
