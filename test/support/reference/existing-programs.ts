import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { patienceMs } from '../patience.ts';

const folder = fileURLToPath(new URL('../../e2e/existing-software/programs', import.meta.url));
/** The folder in which `.ci/run` installs the programs' Python libraries. */
const pythonLibraries = fileURLToPath(new URL('../../../node_modules/.python', import.meta.url));
const run = promisify(execFile);

type Api = 'v1' | 'v2';
/** A program and its first arguments. */
export type ProgramCommand = readonly [string, ...string[]];

/** A program that was written for a store's API and does not know Latchkey. */
export interface ExistingProgram {
  readonly file: string;
  /** The API version that it uses. */
  readonly api: Api;
  /** Why it cannot run here; null: it can. */
  readonly missing: () => Promise<string | null>;
  /** Builds it in a directory; returns its command. */
  readonly build: (directory: string) => Promise<ProgramCommand>;
}

function environment(): Record<string, string> {
  const { PATH = '', HOME = '' } = process.env;
  return { PATH, HOME, ...(existsSync(pythonLibraries) && { PYTHONPATH: pythonLibraries }) };
}

async function runs(command: string, ...args: string[]): Promise<boolean> {
  return await run(command, args, { env: environment() }).then(
    () => true,
    () => false,
  );
}

function needs(command: string, versionArgument: string = '--version'): () => Promise<string | null> {
  return async () => ((await runs(command, versionArgument)) ? null : `there is no ${command}`);
}

function inNode(file: string, api: Api = 'v2'): ExistingProgram {
  return { file, api, missing: async () => null, build: async () => [process.execPath, join(folder, file)] };
}

function inPython(file: string, library: string, api: Api = 'v2'): ExistingProgram {
  const missing = async (): Promise<string | null> => {
    if (!(await runs('python3', '--version'))) return 'there is no python3';
    if (await runs('python3', '-c', `import ${library}`)) return null;
    return `python3 has no ${library}: python3 -m pip install --target node_modules/.python ${library}`;
  };
  return { file, api, missing, build: async () => ['python3', join(folder, file)] };
}

function inGo(file: string): ExistingProgram {
  const build = async (directory: string): Promise<ProgramCommand> => {
    const program = join(directory, 'program');
    const env = { ...environment(), GOTOOLCHAIN: 'local' };
    await run('go', ['build', '-o', program, join(folder, file)], { env });
    return [program];
  };
  return { file, api: 'v2', missing: needs('go', 'version'), build };
}

function inJava(file: string): ExistingProgram {
  const build = async (directory: string): Promise<ProgramCommand> => {
    await run('javac', ['-d', directory, join(folder, file)], { env: environment() });
    return ['java', '-XX:TieredStopAtLevel=1', '-cp', directory, file.replace('.java', '')];
  };
  return { file, api: 'v2', missing: needs('javac'), build };
}

function inShell(file: string): ExistingProgram {
  return { file, api: 'v2', missing: needs('curl'), build: async () => ['sh', join(folder, file)] };
}

/** Checks its license when it starts; the store's host is hard-coded unless `LICENSE_API` is set. */
export const desktopApp: ExistingProgram = inNode('desktop-app.mjs');

/** Treats every error status except 5xx as a refusal. */
export const audioPlugin: ExistingProgram = inNode('audio-plugin.mjs');

/** Treats every response with `data` as a license that is not disabled. */
const gameModLoader: ExistingProgram = inNode('game-mod-loader.mjs');

export const existingPrograms: readonly ExistingProgram[] = [
  desktopApp,
  audioPlugin,
  gameModLoader,
  inNode('web-backend.mjs'),
  inNode('browser-game.mjs', 'v1'),
  inPython('command_line_tool.py', 'requests'),
  inPython('plugin_host.py', 'requests', 'v1'),
  inPython('chat_bot.py', 'aiohttp'),
  inPython('modelling_addon.py', 'urllib'),
  inGo('server_agent.go'),
  inJava('ServerMod.java'),
  inShell('installer.sh'),
];

/** Programs that were written for Gumroad. */
export const gumroadPrograms: readonly ExistingProgram[] = [
  inNode('gumroad/query-post.mjs'),
  inNode('gumroad/json-body.mjs'),
  inShell('gumroad/multipart.sh'),
  inPython('gumroad/form.py', 'urllib'),
  inGo('gumroad/post_form.go'),
];

/** Programs that were written for Lemon Squeezy. */
export const lemonSqueezyPrograms: readonly ExistingProgram[] = [
  inNode('lemonsqueezy/sdk.mjs'),
  inNode('lemonsqueezy/status-only.mjs'),
  inShell('lemonsqueezy/form.sh'),
  inPython('lemonsqueezy/desktop.py', 'urllib'),
  inGo('lemonsqueezy/command.go'),
];

/** Programs that were written for Polar. */
export const polarPrograms: readonly ExistingProgram[] = [
  inNode('polar/sdk.mjs'),
  inNode('polar/status-granted.mjs'),
  inShell('polar/validate.sh'),
  inPython('polar/json_post.py', 'urllib'),
  inGo('polar/limited.go'),
];

/** The settings of a program, as its users configure them. */
export interface ProgramSettings {
  readonly api: string;
  readonly secret: string;
  readonly apiKey: string;
  readonly productLink: string;
  /** The file in which it remembers its activation. */
  readonly activation: string;
}

/** Runs a program once; returns its conclusion, such as `VALID`. Throws if the program fails. */
export async function conclude(
  command: ProgramCommand,
  { api, secret, apiKey, productLink, activation }: ProgramSettings,
): Promise<string> {
  return await concludeAt(command, {
    LICENSE_API: api,
    PRODUCT_SECRET: secret,
    API_KEY: apiKey,
    PRODUCT_LINK: productLink,
    LICENSE_FILE: activation,
  });
}

/** Runs a program that was written for a store with an API of its own once; returns its conclusion. */
export async function concludeAt(
  [program, ...args]: ProgramCommand,
  settings: Readonly<Record<string, string>>,
): Promise<string> {
  const env = { ...environment(), ...settings };
  const { stdout } = await run(program, args, { env, timeout: patienceMs });
  return stdout.trim();
}
