import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { stripVTControlCharacters } from 'node:util';
import { ownProgram } from './command-line.ts';
import { patienceMs } from '../patience.ts';

/** A command line on a terminal, with a simulated user at the keyboard. */
export interface Terminal extends AsyncDisposable {
  /** The output so far, without colours and cursor movements. */
  readonly screen: string;
  /** Waits until this text is shown after the previous text, then types. */
  answer(question: string, keys: string): Promise<void>;
  /** Resolves with the exit code. */
  readonly ended: Promise<number | null>;
}

/** Runs a command line on a pseudo-terminal (script(1)). */
export function onTerminal(
  argv: readonly string[],
  cwd: string,
  { program = ownProgram, home = '/nonexistent' }: { program?: readonly string[]; home?: string } = {},
): Terminal {
  const words = [...program, ...argv].map((word) => `'${word}'`);
  const line = `stty columns 100 rows 40; exec ${words.join(' ')}`;
  const env = { PATH: process.env['PATH'], HOME: home, TERM: 'xterm' };
  const child = spawn('script', ['--quiet', '--return', '--command', line, '/dev/null'], { cwd, env });
  const listeners = new Set<() => void>();
  let shown = '';
  let read = 0;
  child.stdout.on('data', (bytes: Buffer) => {
    shown += bytes.toString();
    for (const listen of listeners) listen();
  });
  const ended = once(child, 'close').then(([code]) => code as number | null);
  const screen = (): string => stripVTControlCharacters(shown);
  return {
    get screen() {
      return screen();
    },
    ended,
    async answer(question, keys) {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const look = (): void => {
        const at = screen().indexOf(question, read);
        if (at === -1) return;
        read = at + question.length;
        resolve();
      };
      const timer = setTimeout(() => {
        reject(new Error(`"${question}" was not asked: ${screen()}`));
      }, patienceMs);
      listeners.add(look);
      look();
      await promise.finally(() => {
        clearTimeout(timer);
        listeners.delete(look);
      });
      child.stdin.write(keys);
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
      await ended;
    },
  };
}
