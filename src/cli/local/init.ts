import {
  chmodSync,
  chownSync,
  linkSync,
  lstatSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { formatReason } from '../../config/fault/fault.ts';
import { formatAddress } from '../../config/value/address.ts';
import type { Environment } from '../../config/environment.ts';
import type { Finding } from '../../config/fault/finding.ts';
import { type LoadedConfiguration, loadConfiguration } from '../../config/load.ts';
import { type DialectName, dialectNames } from '../../domain/dialect.ts';
import { makeDirectory } from '../../store/sqlite/files/private-file.ts';
import { type Command, defineCommand, noteKey, textOption } from '../command.ts';
import { toLoadOptions } from '../configuration.ts';
import { exitCode } from '../exit-code.ts';
import { formatFindings } from '../finding.ts';
import { formatPath, hintFor } from '../hint.ts';
import { type GivenStore, type InitOptions, planGiven, readGiven } from '../init/given.ts';
import { chooseAddress, choosePlaces, findTarget, writePath } from '../init/place.ts';
import { formatPlan, type PlannedStore } from '../init/plan.ts';
import type { Output } from '../output.ts';

/** `init`: asks for what the options do not say, examines the store, and writes the configuration. */
export const initCommand: Command = defineCommand<InitOptions>(
  (syntax) =>
    syntax
      .options({
        authority: {
          type: 'boolean',
          describe: 'Configure an authority: the central API itself, with its own store',
        },
        'upstream-url': textOption('Configure an agent in front of the store with this base URL'),
        product: textOption('Key of the product whose license keys the agent serves'),
        'secret-file': textOption('File with the secret of the product; - is standard input', 'file'),
        'api-key-file': textOption('File with the API key of your account at the store, for coupons', 'file'),
        dialect: { ...textOption('Dialect of the store; default: detected'), choices: dialectNames },
        listen: textOption('TCP address; default: 127.0.0.1:8787, or the next free port'),
        unchecked: { type: 'boolean', describe: 'Write the file even if checks fail' },
        force: { type: 'boolean', describe: 'Replace an existing file' },
        yes: { type: 'boolean', describe: 'Ask nothing' },
      })
      .example('latchkey init', 'asks for what is needed, then writes ./latchkey.yaml')
      .example('latchkey init --authority', 'configures the central API itself')
      .example(
        'latchkey init --upstream-url https://api.example.com --product RGsF --secret-file ./rgsf.secret',
        'asks nothing',
      ),
  async (args, output) => {
    const target = findTarget(args);
    if (args.force !== true && isThere(target)) {
      const advice = 'To replace it: --force. To write another file: --config FILE';
      return refuse(output, `${formatPath(target)} already exists`, advice);
    }
    const given = readGiven(args, target);
    const canAsk = args.yes !== true && process.stdin.isTTY && process.stderr.isTTY;
    const task: Task = { args, target, output, address: args.listen ?? (await chooseAddress()) };
    if (!canAsk) return await writeUnasked(task, planGiven(given));
    // Loaded only when somebody is asked.
    const { Cancelled } = await import('../init/questions.ts');
    try {
      return await writeAsked(task, given);
    } catch (error) {
      if (error instanceof Cancelled) return refuse(output, 'cancelled');
      throw error;
    }
  },
);

interface Task {
  readonly args: InitOptions;
  readonly target: string;
  readonly output: Output;
  readonly address: string;
}

/** A configuration that is sound, and what was found of the store that it names. */
interface Draft {
  readonly text: string;
  readonly loaded: LoadedConfiguration;
  readonly findings: readonly Finding[];
}

async function writeUnasked(task: Task, store: PlannedStore | null): Promise<number> {
  const draft = await makeDraft(task, store);
  if (draft === null) return exitCode.configuration;
  if (isWell(draft) || task.args.unchecked === true) return write(task, draft);
  task.output.complain([formatFindings(draft.findings)]);
  return refuse(task.output, 'some checks failed', 'To write it anyway: --unchecked');
}

async function writeAsked(task: Task, given: GivenStore | null | undefined): Promise<number> {
  const { askFor, askForStore, askWhatNow } = await import('../init/questions.ts');
  let store = await askFor(given);
  for (;;) {
    const draft = await makeDraft(task, store);
    if (draft === null && store === null) return exitCode.configuration;
    if (draft !== null) {
      if (isWell(draft) || task.args.unchecked === true) return write(task, draft);
      task.output.complain([formatFindings(draft.findings)]);
      const now = await askWhatNow();
      if (now === 'write') return write(task, draft);
      if (now === 'stop') return refuse(task.output, 'some checks failed');
    }
    store = await askForStore({ dialect: task.args.dialect }, store);
  }
}

function isWell({ findings }: Draft): boolean {
  return findings.every(({ level }) => level !== 'fail');
}

/** Examines what would be written; prints the faults and gives null where it could not be served. */
async function makeDraft(task: Task, store: PlannedStore | null, isSettled = false): Promise<Draft | null> {
  const { args, target, output, address } = task;
  const { stateDir, socket } = choosePlaces(target, args.stateDir);
  const text = formatPlan({
    stateDir: writePath(stateDir, target),
    tcp: address,
    socket: socket === null ? null : writePath(socket, target),
    store,
  });
  const loaded = loadConfiguration({ file: target, text, environment: environmentOfOthers() });
  if (!loaded.ok) {
    output.complain(loaded.faults.map((fault) => `latchkey: ${fault.key}: ${fault.text}`));
    return null;
  }
  const { findings, dialect } = await examine(loaded);
  const isOther = store !== null && dialect !== null && dialect !== store.dialect;
  if (isOther && args.dialect === undefined && !isSettled)
    return await makeDraft(task, { ...store, dialect }, true);
  return { text, loaded, findings };
}

/** Looks with the doctor's eyes at the store, and at who can read the files of secrets. */
async function examine({
  configuration,
  secretFiles,
}: LoadedConfiguration): Promise<{ findings: readonly Finding[]; dialect: DialectName | null }> {
  const { examineUpstream } = await import('../../daemon/doctor/upstream.ts');
  const { examineSecret } = await import('../../daemon/doctor/files.ts');
  const { findings, dialect } = await examineUpstream(configuration, null);
  return { findings: [...secretFiles.map((path) => examineSecret(path, null)), ...findings], dialect };
}

/** The variables of this shell are not those of whoever will serve the file. */
function environmentOfOthers(): Environment {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('LATCHKEY_')));
}

function write({ args, target, output }: Task, { text, loaded, findings }: Draft): number {
  try {
    writeWhole(target, text, args.force === true);
  } catch (error) {
    return refuse(output, `${formatPath(target)} cannot be written: ${formatReason(error)}`);
  }
  const { role, stateDir, listen, upstream } = loaded.configuration;
  const found = loadConfiguration(toLoadOptions({ [noteKey]: args[noteKey] }));
  const isFound = found.ok && found.file === target;
  const hint = hintFor(isFound ? {} : { config: formatPath(target) });
  const next = [hint('serve'), hint('status')];
  if (args.json) {
    output.printJson({ file: target, role, state_dir: stateDir, findings, next });
    return exitCode.done;
  }
  const what = upstream === null ? 'an authority' : `an agent in front of ${upstream.baseUrl}`;
  const at = listen.tcp === null ? '' : ` on http://${formatAddress(listen.tcp)}`;
  output.print(
    [
      ...(findings.length === 0 ? [] : [formatFindings(findings), '']),
      `Wrote ${formatPath(target)} (mode ${formatMode(target)}): ${what}${at}`,
      `Start it: ${next[0]}`,
      `Then, in another terminal: ${next[1]}`,
    ].join('\n'),
  );
  return exitCode.done;
}

/** Also a link that leads nowhere. What else is wrong with a path is told when the file is written. */
function isThere(path: string): boolean {
  try {
    lstatSync(path);
    return true;
  } catch {
    return false;
  }
}

function formatMode(path: string): string {
  return (statSync(path).mode & 0o777).toString(8).padStart(4, '0');
}

/**
 * Writes a file, at once whole, that its user alone can read; what was there, also a link, is not followed, and
 * replaced only when that `isWanted`: somebody may have made it while questions were answered.
 */
function writeWhole(path: string, text: string, isWanted: boolean): void {
  makeDirectory(dirname(path));
  const draft = `${path}.new`;
  rmSync(draft, { force: true });
  try {
    writeFileSync(draft, text, { flag: 'wx', mode: 0o600, flush: true });
    if (isWanted) {
      keepReaders(draft, lstatSync(path, { throwIfNoEntry: false }));
      renameSync(draft, path);
    } else linkSync(draft, path);
  } finally {
    rmSync(draft, { force: true });
  }
}

/** A file that its group can read, and nobody beyond, was made so for the user of a service: that one still can. */
function keepReaders(draft: string, before: Stats | undefined): void {
  if (before === undefined || !before.isFile() || before.uid !== process.getuid?.()) return;
  if ((before.mode & 0o777) !== 0o640) return;
  chownSync(draft, before.uid, before.gid);
  chmodSync(draft, 0o640);
}

function refuse(output: Output, why: string, advice?: string): number {
  output.complain([`latchkey: ${why}: nothing was written`, ...(advice === undefined ? [] : [advice])]);
  return exitCode.failed;
}
