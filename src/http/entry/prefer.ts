const longestWaitS = 30;

/** Reads `Prefer: wait=N` (RFC 7240) as ms, 30 s at most; 0 when absent or malformed. */
export function readWait(prefer: readonly string[]): number {
  for (const preference of prefer.flatMap((value) => value.split(','))) {
    const seconds = /^\s*wait\s*=\s*"?(\d{1,9})"?\s*(?:;.*)?$/i.exec(preference)?.[1];
    if (seconds !== undefined) return Math.min(Number(seconds), longestWaitS) * 1000;
  }
  return 0;
}
