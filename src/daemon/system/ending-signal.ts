/** The signals that ask a process to end; SIGHUP is not among them. */
export const endingSignals = ['SIGINT', 'SIGTERM', 'SIGQUIT', 'SIGUSR2'] as const;

/**
 * The signals by which the system ends a process that cannot go on, such as one whose memory is gone. Nobody may listen
 * for them: what raised them would be done again after each, for ever.
 */
export const faultSignals = ['SIGABRT', 'SIGBUS', 'SIGFPE', 'SIGILL', 'SIGSEGV', 'SIGTRAP'] as const;

/** A signal that comes again within this many ms is the same one. */
const repeatedMs = 500;

/**
 * Calls back at the first signal that asks the process to end; `hurry` at each later one, which ends the process at
 * once, with 1, where `hurry` found nothing to hurry. Whoever started the process may pass on what the process was sent
 * as well (Ctrl-C, a supervisor that ends a whole group): that is no second wish. Gives what ends the listening.
 */
export function onEndingSignal(
  end: (signal: NodeJS.Signals) => void,
  hurry: (signal: NodeJS.Signals) => boolean = () => false,
): () => void {
  let lastAt: number | null = null;
  const receive = (signal: NodeJS.Signals): void => {
    const now = performance.now();
    if (lastAt !== null && now - lastAt <= repeatedMs) return;
    const isFirst = lastAt === null;
    lastAt = now;
    if (isFirst) end(signal);
    else if (!hurry(signal)) process.exit(1);
  };
  for (const signal of endingSignals) process.on(signal, receive);
  return () => {
    for (const signal of endingSignals) process.off(signal, receive);
  };
}
