/** A progress bar on the terminal. */
export interface ProgressBar {
  /** Sets the progress, and the text beside the bar. */
  readonly update: (done: number, note: string) => void;
  readonly setTotal: (total: number) => void;
  readonly stop: () => void;
}

/** Starts a progress bar on standard error; null if that is no terminal. */
export async function startProgress(total: number): Promise<ProgressBar | null> {
  if (!process.stderr.isTTY) return null;
  const { SingleBar } = await import('cli-progress');
  const bar = new SingleBar({
    format: '{bar} {percentage}% | {note} | {eta_formatted} left',
    clearOnComplete: true,
    hideCursor: true,
    stream: process.stderr,
  });
  bar.start(total, 0, { note: '' });
  return {
    update: (done, note) => bar.update(done, { note }),
    setTotal: (changed) => bar.setTotal(changed),
    stop: () => bar.stop(),
  };
}
