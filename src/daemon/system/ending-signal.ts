/** The signals that ask a process to end; SIGHUP is not among them. */
export const endingSignals = ['SIGINT', 'SIGTERM', 'SIGQUIT', 'SIGUSR2'] as const;

/** A signal that comes again within this many ms is the same one. */
const repeatedMs = 500;

/**
 * Calls back at the first signal that asks the process to end; a later one ends it at once, with 1. Whoever
 * started the process may pass on what the process was sent as well (Ctrl-C, a supervisor that ends a whole
 * group): that is no second wish. Gives what ends the listening.
 */
export function onEndingSignal(end: (signal: NodeJS.Signals) => void): () => void {
  let firstAt: number | null = null;
  const receive = (signal: NodeJS.Signals): void => {
    const now = performance.now();
    if (firstAt === null) {
      firstAt = now;
      end(signal);
    } else if (now - firstAt > repeatedMs) {
      process.exit(1);
    }
  };
  for (const signal of endingSignals) process.on(signal, receive);
  return () => {
    for (const signal of endingSignals) process.off(signal, receive);
  };
}
