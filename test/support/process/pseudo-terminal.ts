import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { quoteForShell } from '../../../src/cli/hint.ts';

/** A program in a pseudo-terminal (script(1)). */
export interface PseudoTerminal extends AsyncDisposable {
  /** The output so far, escape sequences included. */
  readonly written: () => string;
  readonly type: (keys: string) => void;
  /** Resolves to the exit code. */
  readonly ended: Promise<number>;
}

/** Runs a command line in a terminal with `columns` columns and 24 rows. */
export function openPseudoTerminal(
  argv: readonly string[],
  { columns, environment = {} }: { columns: number; environment?: Readonly<Record<string, string>> },
): PseudoTerminal {
  const command = `stty cols ${columns} rows 24; exec ${argv.map((word) => quoteForShell(word)).join(' ')}`;
  // The environment of a person's terminal: inherited variables of CI and colours would change the output.
  const { CI: _ci, NO_COLOR: _noColor, FORCE_COLOR: _forceColor, ...inherited } = process.env;
  const env = { ...inherited, TERM: 'xterm-256color', ...environment };
  const child = spawn('script', ['--quiet', '--flush', '--return', '--command', command, '/dev/null'], {
    env,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  let written = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (written += text));
  return {
    written: () => written,
    type: (keys) => void child.stdin.write(keys),
    ended: once(child, 'close').then(([code]) => Number(code)),
    [Symbol.asyncDispose]: async () => {
      if (child.exitCode !== null) return;
      child.kill('SIGKILL');
      await once(child, 'close');
    },
  };
}
