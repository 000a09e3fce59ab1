import {
  chmodSync,
  chownSync,
  existsSync,
  linkSync,
  lstatSync,
  rmSync,
  type Stats,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { formatReason } from '../../config/errors.ts';
import { restrictToOwner } from '../../config/file/windows-rights.ts';
import { formatAddress } from '../../config/value/address.ts';
import type { Environment } from '../../config/defaults.ts';
import type { Finding } from '../../domain/finding.ts';
import { valueAt } from '../../config/file/tree.ts';
import { type LoadedConfiguration, loadConfiguration } from '../../config/load.ts';
import type { DialectName } from '../../domain/header-names.ts';
import { makeDirectory, renameOver } from '../../store/sqlite/files/private-file.ts';
import { CommandError, defineCommand } from '../../cli/command.ts';
import { chooseAddress } from '../../cli/free-address.ts';
import { toLoadOptions } from '../../cli/configuration.ts';
import { exitCode } from '../../cli/exit-code.ts';
import { formatFindings } from '../../cli/format.ts';
import { formatPath, hintFor } from '../../cli/hint.ts';
import {
  type RoleOptions,
  type InitOptions,
  initOptions,
  planFromOptions,
  readRoleOptions,
  formatPlan,
  type PlannedRole,
} from './init/plan.ts';
import { choosePaths, findTarget, writePath } from './init/paths.ts';
import type { Output } from '../../cli/output.ts';

export const command = defineCommand({
  command: 'init',
  describe: 'Create a configuration step by step',
  builder: initOptions,
  examples: [
    ['latchkey init', 'asks for what is needed, then writes ./latchkey.yaml'],
    ['latchkey init --store gumroad --product SDGgCnivv6gTTHfVRfUBxQ==', 'an agent of Gumroad; asks nothing'],
    ['latchkey init --authority', 'configures the central API itself'],
    [
      'latchkey init --upstream-url https://api.example.com --product RGsF --secret-file ./rgsf.secret',
      'asks nothing',
    ],
    [
      'latchkey init --issuer https://licenses.example.com --root ./root-1.pub.jwk --product RGsF',
      'on a customer’s machine: a holder of leases, without a secret',
    ],
  ],
  handler: async (args, output) => {
    const target = findTarget(args);
    if (args.force !== true && exists(target)) {
      const advice = 'To replace it: --force. To write another file: --config FILE';
      throw refusal(`${formatPath(target)} already exists`, advice);
    }
    const storeOptions = readRoleOptions(args, target);
    const canAsk = args.yes !== true && process.stdin.isTTY && process.stderr.isTTY;
    const task: Task = { args, target, output, address: args.listen ?? (await chooseAddress()) };
    if (!canAsk) return await writeUnasked(task, planFromOptions(storeOptions));
    // The prompts are loaded only if they are needed.
    const { Cancelled } = await import('./init/questions.ts');
    try {
      return await writeAsked(task, storeOptions);
    } catch (error) {
      if (error instanceof Cancelled) throw refusal('cancelled');
      throw error;
    }
  },
});

interface Task {
  readonly args: InitOptions;
  readonly target: string;
  readonly output: Output;
  readonly address: string;
}

/** A valid configuration, and the findings about its store. */
interface Draft {
  readonly text: string;
  readonly loaded: LoadedConfiguration;
  readonly findings: readonly Finding[];
}

async function writeUnasked(task: Task, store: PlannedRole): Promise<number> {
  const draft = await makeDraft(task, store);
  if (draft === null) return exitCode.configuration;
  if (isWell(draft) || task.args.unchecked === true) return await write(task, draft);
  task.output.printError([formatFindings(draft.findings)]);
  throw refusal('some checks failed', 'To write it anyway: --unchecked');
}

async function writeAsked(task: Task, storeOptions: RoleOptions): Promise<number> {
  const { askAgain, askFor, askNextStep } = await import('./init/questions.ts');
  let store = await askFor(storeOptions);
  for (;;) {
    const draft = await makeDraft(task, store);
    if (draft === null && store === null) return exitCode.configuration;
    if (draft !== null) {
      if (isWell(draft) || task.args.unchecked === true) return await write(task, draft);
      task.output.printError([formatFindings(draft.findings)]);
      const next = await askNextStep();
      if (next === 'write') return await write(task, draft);
      if (next === 'stop') throw refusal('some checks failed');
    }
    store = await askAgain({ dialect: task.args.dialect }, store);
  }
}

function isWell({ findings }: Draft): boolean {
  return findings.every(({ level }) => level !== 'fail');
}

/** Checks the configuration that would be written. Prints its errors and returns null if it is not valid. */
async function makeDraft(task: Task, store: PlannedRole, isDetected = false): Promise<Draft | null> {
  const { args, target, output, address } = task;
  const { stateDir, socket } = choosePaths(target, args.stateDir);
  const text = formatPlan({
    stateDir: writePath(stateDir, target),
    tcp: address,
    socket: socket === null ? null : writePath(socket, target),
    store,
  });
  const loaded = loadConfiguration({ file: target, text, environment: otherEnvironment() });
  if (!loaded.ok) {
    output.printError(loaded.errors.map((error) => `latchkey: ${error.key}: ${error.text}`));
    return null;
  }
  const { findings, dialect } = await examine(loaded);
  const isOther = store !== null && 'dialect' in store && dialect !== null && dialect !== store.dialect;
  if (isOther && args.dialect === undefined && !isDetected)
    return await makeDraft(task, { ...store, dialect }, true);
  return { text, loaded, findings };
}

/** Checks the store, and who can read the secret files, as `doctor` does. */
async function examine({
  configuration,
  secretFiles,
}: LoadedConfiguration): Promise<{ findings: readonly Finding[]; dialect: DialectName | null }> {
  const { examineUpstream } = await import('../../daemon/doctor/upstream.ts');
  const { examineSecret } = await import('../../daemon/doctor/files.ts');
  if (configuration.role === 'holder') {
    const { examineFeatures } = await import('../../daemon/doctor/examination.ts');
    return { findings: await examineFeatures(configuration, hintFor({})), dialect: null };
  }
  const { findings, dialect } = await examineUpstream(configuration, null);
  return { findings: [...secretFiles.map((path) => examineSecret(path, null)), ...findings], dialect };
}

/** The daemon that reads the file will not have the LATCHKEY_ variables of this shell. */
function otherEnvironment(): Environment {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('LATCHKEY_')));
}

async function write({ args, target, output }: Task, { text, loaded, findings }: Draft): Promise<number> {
  try {
    createFolder(target, loaded.configuration.stateDir);
    writeAtomically(target, text, args.force === true);
  } catch (error) {
    throw refusal(`${formatPath(target)} cannot be written: ${formatReason(error)}`);
  }
  const { role, stateDir, listen, upstream } = loaded.configuration;
  const found = loadConfiguration(toLoadOptions({ warn: args.warn }));
  const isFound = found.ok && found.file === target;
  const hint = hintFor(isFound ? {} : { config: formatPath(target) });
  const next = [hint('serve'), hint('status')];
  const whats = {
    authority: 'an authority',
    agent: `an agent in front of ${upstream?.baseUrl}`,
    // The section is of a feature.
    holder: `a holder of leases from ${String(valueAt(loaded.configuration, ['leases', 'issuer']))}`,
  };
  const [tcp] = listen.tcp;
  const at = tcp === undefined ? '' : ` on http://${formatAddress(tcp)}`;
  return await output.result(
    { file: target, role, state_dir: stateDir, findings, next },
    [
      ...(findings.length === 0 ? [] : [formatFindings(findings), '']),
      `Wrote ${formatPath(target)}${formatMode(target)}: ${whats[role]}${at}`,
      `Start it: ${next[0]}`,
      `Then, in another terminal: ${next[1]}`,
    ].join('\n'),
  );
}

/** A broken link counts, too. Other errors of the path are reported when the file is written. */
function exists(path: string): boolean {
  try {
    lstatSync(path);
    return true;
  } catch {
    return false;
  }
}

/** Windows has no modes. */
function formatMode(path: string): string {
  if (process.platform === 'win32') return '';
  return ` (mode ${(statSync(path).mode & 0o777).toString(8).padStart(4, '0')})`;
}

/** On Windows and macOS, the folder of the configuration may be the state directory. */
function createFolder(target: string, stateDir: string): void {
  const folder = dirname(target);
  if (existsSync(folder)) return;
  makeDirectory(folder, folder === stateDir ? 0o700 : 0o777);
  if (folder === stateDir && process.platform === 'win32') restrictToOwner(folder, 'directory');
}

/**
 * Writes a file atomically, readable only by its owner. Links are not followed. An existing file is replaced only with
 * `isReplaced`: another process may have created it while the user answered the prompts.
 */
function writeAtomically(path: string, text: string, isReplaced: boolean): void {
  const draft = `${path}.new`;
  rmSync(draft, { force: true });
  try {
    writeFileSync(draft, '', { flag: 'wx', mode: 0o600 });
    if (process.platform === 'win32') restrictToOwner(draft, 'file');
    writeFileSync(draft, text, { flag: 'r+', flush: true });
    if (isReplaced) {
      keepReaders(draft, lstatSync(path, { throwIfNoEntry: false }));
      renameOver(draft, path);
    } else linkSync(draft, path);
  } finally {
    rmSync(draft, { force: true });
  }
}

/** A file with mode 0640 is for the user of a service, who must still be able to read it. */
function keepReaders(draft: string, before: Stats | undefined): void {
  if (before === undefined || !before.isFile() || before.uid !== process.getuid?.()) return;
  if ((before.mode & 0o777) !== 0o640) return;
  chownSync(draft, before.uid, before.gid);
  chmodSync(draft, 0o640);
}

function refusal(why: string, advice?: string): CommandError {
  return new CommandError([
    `latchkey: ${why}: nothing was written`,
    ...(advice === undefined ? [] : [advice]),
  ]);
}
