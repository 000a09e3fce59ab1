import { execFile } from 'node:child_process';
import { cp, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { installClient } from '../process/installed-client.ts';
import { patienceMs } from '../patience.ts';

const run = promisify(execFile);
const folder = join(import.meta.dirname, '../../../examples/clients');
/** The folder in which `.ci/run` installs Python libraries. */
const pythonLibraries = join(import.meta.dirname, '../../../node_modules/.python');

type Command = readonly [string, ...string[]];

/** One of the programs in `examples/clients`. */
export interface ClientExample {
  readonly name: string;
  /** Whether the program also supports Unix sockets. */
  readonly hasSocket: boolean;
  /** Commands that must succeed for the program to run here. */
  readonly needs: readonly Command[];
  /** Builds the program in a copy of its folder; returns its command. */
  readonly build: (directory: string) => Promise<Command>;
}

const python: Command = ['python3', '--version'];

/** Mono sometimes aborts or hangs for a minute at shutdown (mono/mono#21493); this code exits before. */
const quickExit = `
using System.Runtime.InteropServices;
static class QuickExit
{
    [DllImport("libc")] static extern void _exit(int code);
    static void Main(string[] args) { _exit(LicenseCheck.Main(args)); }
}
`;

export const clientExamples: readonly ClientExample[] = [
  {
    name: 'node',
    hasSocket: true,
    needs: [],
    async build(directory) {
      await installClient(directory);
      return [process.execPath, join(directory, 'license-check.js')];
    },
  },
  {
    name: 'python',
    hasSocket: true,
    needs: [python],
    build: async (directory) => ['python3', join(directory, 'license_check.py')],
  },
  {
    name: 'python-async',
    hasSocket: true,
    needs: [python, ['python3', '-c', 'import aiohttp']],
    build: async (directory) => ['python3', join(directory, 'license_check.py')],
  },
  {
    name: 'go',
    hasSocket: true,
    needs: [['go', 'version']],
    async build(directory) {
      await make(['go', 'build', '-o', 'program', '.'], directory);
      return [join(directory, 'program')];
    },
  },
  {
    name: 'rust',
    hasSocket: true,
    needs: [
      ['cargo', '--version'],
      ['pkg-config', '--exists', 'libcurl'],
    ],
    async build(directory) {
      await make(['cargo', 'build', '--quiet', '--target-dir', 'target'], directory);
      return [join(directory, 'target/debug/license-check')];
    },
  },
  {
    name: 'java',
    hasSocket: false,
    needs: [['javac', '--version']],
    async build(directory) {
      await make(['javac', '--release', '17', '-d', 'classes', 'src/main/java/LicenseCheck.java'], directory);
      return ['java', '-XX:TieredStopAtLevel=1', '-cp', join(directory, 'classes'), 'LicenseCheck'];
    },
  },
  {
    name: 'csharp',
    hasSocket: false,
    needs: [
      ['mcs', '--version'],
      ['mono', '--version'],
      ['sh', '-c', 'gacutil -l System.Runtime.Serialization | grep -q Version='],
    ],
    async build(directory) {
      await writeFile(join(directory, 'QuickExit.cs'), quickExit);
      const libraries = '-r:System.Net.Http,System.Runtime.Serialization,System.Xml';
      const sources = ['-main:QuickExit', 'LicenseCheck.cs', 'QuickExit.cs'];
      await make(['mcs', libraries, '-out:program.exe', ...sources], directory);
      return ['mono', join(directory, 'program.exe')];
    },
  },
  {
    name: 'c',
    hasSocket: true,
    needs: [
      ['cc', '--version'],
      ['pkg-config', '--exists', 'libcurl', 'libcjson'],
    ],
    async build(directory) {
      await make(['make'], directory);
      return [join(directory, 'license_check')];
    },
  },
  {
    name: 'php',
    hasSocket: true,
    needs: [['php', '-r', 'exit(extension_loaded("curl") ? 0 : 1);']],
    build: async (directory) => ['php', join(directory, 'license_check.php')],
  },
  {
    name: 'lua',
    hasSocket: false,
    needs: [['lua5.4', '-e', 'require("socket") require("cjson")']],
    build: async (directory) => ['lua5.4', join(directory, 'license_check.lua')],
  },
];

/** The missing requirement. Null: nothing is missing. */
export async function missingFor({ needs }: ClientExample): Promise<string | null> {
  for (const need of needs) {
    if (!(await succeeds(need))) return `${need.join(' ')} does not work here`;
  }
  return null;
}

export async function buildExample({ name, build }: ClientExample, directory: string): Promise<Command> {
  const copy = join(directory, name);
  await cp(join(folder, name), copy, { recursive: true });
  return await build(copy);
}

/** Runs a program, which is killed if it hangs; returns its output and exit code. */
export async function runExample(
  [program, ...options]: Command,
  given: readonly string[],
  environment: Record<string, string> = {},
): Promise<{ stdout: string; stderr: string; code: number | null }> {
  const running = {
    env: { ...surroundings(), ...environment },
    timeout: patienceMs,
    killSignal: 'SIGKILL',
  } as const;
  return await run(program, [...options, ...given], running)
    .then((ran) => ({ ...ran, code: 0 }))
    .catch((error: unknown) => error as { stdout: string; stderr: string; code: number | null });
}

function surroundings(): Record<string, string> {
  const { PATH = '', HOME = '' } = process.env;
  return { PATH, HOME, PYTHONPATH: pythonLibraries, GOTOOLCHAIN: 'local' };
}

async function succeeds([program, ...options]: Command): Promise<boolean> {
  return await run(program, options, { env: surroundings() }).then(
    () => true,
    () => false,
  );
}

async function make([program, ...options]: Command, directory: string): Promise<void> {
  await run(program, options, { cwd: directory, env: surroundings() });
}
