import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { inject, vi, type MockInstance } from 'vitest';
import { runProgram } from '../../../src/cli/program.ts';
import { createOutput } from '../../../src/cli/output.ts';
import { compileCache } from '../build-once.ts';
import { patienceMs } from '../patience.ts';

/** The result of a command line. */
export interface Outcome {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** The working directory of commands in tests, so that they do not find a `latchkey.yaml` of the clone. */
const emptyDirectory = mkdtempSync(join(tmpdir(), 'latchkey-cwd-'));
process.once('exit', () => rmSync(emptyDirectory, { recursive: true, force: true }));

let running = 0;
let chosen: MockInstance<typeof process.cwd> | null = null;

/** Runs a command line in this process, in an empty working directory unless the test has chosen one. */
export async function latchkey(...argv: string[]): Promise<Outcome> {
  if (running === 0 && !isDirectoryChosen()) {
    chosen = vi.spyOn(process, 'cwd').mockReturnValue(emptyDirectory);
  }
  running += 1;
  try {
    return await runHere(argv);
  } finally {
    running -= 1;
    if (running === 0) {
      chosen?.mockRestore();
      chosen = null;
    }
  }
}

function isDirectoryChosen(): boolean {
  const { value }: PropertyDescriptor = Object.getOwnPropertyDescriptor(process, 'cwd') ?? {};
  return vi.isMockFunction(value);
}

async function runHere(argv: readonly string[]): Promise<Outcome> {
  let out = '';
  let err = '';
  const output = createOutput(
    (text) => void (out += text),
    (text) => void (err += text),
  );
  const code = await runProgram(argv, output);
  return { code, out, err };
}

/** The program, with its first arguments. */
export type Program = readonly [file: string, ...argv: string[]];

/** The program of this repository: built, in the projects that build it once, and otherwise from source. */
export const ownProgram: Program = [
  process.execPath,
  inject('builtProgram') ?? fileURLToPath(new URL('../../../src/cli/main.ts', import.meta.url)),
];

/** The default environment of a program. All runs of `ownProgram` share one compile cache. */
export function compiledOnce(program: Program): Record<string, string> {
  return program === ownProgram ? { NODE_COMPILE_CACHE: compileCache } : {};
}

/** Runs a command line in a separate process, which is killed if it hangs. */
export function runProcess(
  argv: readonly string[],
  environment: Readonly<Record<string, string>> = {},
  program: Program = ownProgram,
  cwd: string = emptyDirectory,
): Promise<Outcome> {
  const { promise, resolve } = Promise.withResolvers<Outcome>();
  const [file, ...first] = program;
  const env = { ...process.env, ...compiledOnce(program), ...environment };
  const child = execFile(file, [...first, ...argv], { env, cwd, timeout: patienceMs }, (_error, out, err) => {
    resolve({ code: child.exitCode ?? -1, out, err });
  });
  return promise;
}
