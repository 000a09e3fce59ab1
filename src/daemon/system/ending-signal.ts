/** The signals that end the process. SIGHUP reloads instead. */
export const endingSignals = ['SIGINT', 'SIGTERM', 'SIGQUIT', 'SIGUSR2'] as const;

/**
 * The signals by which the system ends a process after a fatal fault. They must have no handler: after the handler, the
 * faulting instruction would run again, for ever.
 */
export const faultSignals = ['SIGABRT', 'SIGBUS', 'SIGFPE', 'SIGILL', 'SIGSEGV', 'SIGTRAP'] as const;

/** A signal within this time after the last one counts as the same, in ms. */
const repeatedMs = 500;

/**
 * Calls `end` at the first signal that ends the process, and `onRepeat` at each later signal. If `onRepeat` returns false, the
 * process exits at once with 1. A supervisor may forward the same signal (Ctrl-C): repeats within 500 ms count as one.
 * Returns a function that removes the handlers.
 */
export function onEndingSignal(
  end: (signal: NodeJS.Signals) => void,
  onRepeat: (signal: NodeJS.Signals) => boolean = () => false,
): () => void {
  let lastAt: number | null = null;
  const receive = (signal: NodeJS.Signals): void => {
    const now = performance.now();
    if (lastAt !== null && now - lastAt <= repeatedMs) return;
    const isFirst = lastAt === null;
    lastAt = now;
    if (isFirst) end(signal);
    else if (!onRepeat(signal)) process.exit(1);
  };
  for (const signal of endingSignals) process.on(signal, receive);
  return () => {
    for (const signal of endingSignals) process.off(signal, receive);
  };
}
