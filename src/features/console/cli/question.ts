import { confirm, isCancel } from '@clack/prompts';
import { setTimeout as sleep } from 'node:timers/promises';
import type { WaitingSignInList } from '../wire/console.ts';

type SignIns = WaitingSignInList['sign_ins'];

type Daemon = {
  /** The pages that wait, the oldest first. */
  readonly waiting: (signal: AbortSignal) => Promise<SignIns>;
  readonly refuse: (code: string) => Promise<void>;
};

const pollMs = 1_000;

/** Asks about each page that waits, the newest first. Returns the code of the page that is let in; null after Ctrl-C. */
export async function askForCode({ waiting, refuse }: Daemon): Promise<string | null> {
  const end = new AbortController();
  const stop = (): void => end.abort();
  process.on('SIGINT', stop).on('SIGTERM', stop);
  try {
    while (!end.signal.aborted) {
      const newest = (await waiting(end.signal)).at(-1);
      if (newest === undefined) {
        await sleep(pollMs, undefined, { signal: end.signal }).catch(() => undefined);
        continue;
      }
      const answer = await askAbout(newest.code, waiting, end.signal);
      if (answer === 'cancelled') return null;
      if (answer === 'yes') return newest.code;
      if (answer === 'no') await refuse(newest.code);
    }
    return null;
  } finally {
    process.off('SIGINT', stop).off('SIGTERM', stop);
  }
}

/** Asks about one page. `gone`: the page does not wait any more. */
async function askAbout(
  code: string,
  waiting: Daemon['waiting'],
  signal: AbortSignal,
): Promise<'yes' | 'no' | 'gone' | 'cancelled'> {
  const over = new AbortController();
  const ended = AbortSignal.any([over.signal, signal]);
  let isGone = false;
  const watch = async (): Promise<void> => {
    while (!ended.aborted) {
      await sleep(pollMs, undefined, { signal: ended });
      isGone = !(await waiting(ended)).some((each) => each.code === code);
      if (isGone) over.abort();
    }
  };
  // An error of the daemon shows at the answer.
  const watching = watch().catch(() => undefined);
  const message = `The page shows ${code}. Is this yours?`;
  // Standard output is for the result. A wrong page must not get in by a hasty Enter.
  const answer = await confirm({ output: process.stderr, message, initialValue: false, signal: ended });
  over.abort();
  await watching;
  if (isGone) return 'gone';
  if (isCancel(answer)) return 'cancelled';
  return answer ? 'yes' : 'no';
}
