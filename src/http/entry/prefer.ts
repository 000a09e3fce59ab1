const longestWaitS = 30;

/** How long a caller will wait, in ms, by `Prefer: wait=N` (RFC 7240); 0 when it says nothing readable. */
export function readWait(prefer: readonly string[]): number {
  for (const preference of prefer.flatMap((value) => value.split(','))) {
    const seconds = /^\s*wait\s*=\s*"?(\d{1,9})"?\s*(?:;.*)?$/i.exec(preference)?.[1];
    if (seconds !== undefined) return Math.min(Number(seconds), longestWaitS) * 1000;
  }
  return 0;
}
