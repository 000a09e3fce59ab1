import { closeSync, openSync, readSync, statSync } from 'node:fs';
import { release, totalmem } from 'node:os';
import { effective, secretsOf } from '../../config/configuration.ts';
import { formatConfigErrors, formatSource, toLoadOptions } from '../configuration.ts';
import { formatKey, formatReason } from '../../config/errors.ts';
import { readFileOrInput, readNamedFile } from '../../config/file/named-file.ts';
import { leavesOf } from '../../config/file/tree.ts';
import { mask } from '../../config/setting-types.ts';
import { type ConfigurationResult, loadConfiguration, locateDaemon } from '../../config/load.ts';
import { statusObject } from '../../wire/status.ts';
import { callDaemon } from '../client/daemon.ts';
import { writeNewFile } from '../client/save.ts';
import { CommandError, defineCommand, type GlobalOptions, textOption } from '../command.ts';
import { formatFindings } from '../format.ts';
import { masked, maskedLog } from '../masking.ts';
import { toSafeJson } from '../output.ts';
import { toVisibleLines } from '../screen.ts';
import { examineAll } from './doctor.ts';

/** How many of the last lines of a log are written. */
const logLines = 200;
/** How much of the end of a large log is read. */
const logBytes = 1024 ** 2;

/** A setting that often has the name of a person. */
const deviceName = 'leases.device_name';

interface Part {
  readonly title: string;
  readonly text: string;
}

export const command = defineCommand({
  command: 'support',
  describe: 'Write what others need to help, without secrets, into a new file',
  builder: {
    output: textOption('New file; default: latchkey-support-DATE.txt', 'file'),
    log: textOption(
      'The log of the daemon, of which the last 200 lines are added; - is standard input',
      'file',
    ),
  },
  examples: [
    ['latchkey support', 'read the file before you send it to support'],
    [
      'journalctl -u latchkey -n 200 -o cat | latchkey support --log -',
      'with the log of the systemd service',
    ],
  ],
  epilogue: 'It also works while no daemon runs.',
  handler: async (args, output) => {
    const now = new Date();
    const log = args.log === undefined ? null : readLog(args.log);
    const file = args.output ?? `latchkey-support-${now.toISOString().slice(0, 10)}.txt`;
    const loaded = loadConfiguration(toLoadOptions(args));
    const secrets = loaded.ok ? secretsOf(loaded.configuration) : [];
    const parts = await partsOf(args, loaded, log, secrets);
    const text = render(
      parts.map((part) => ({ ...part, text: masked(part.text, secrets) })),
      now,
    );
    await writeNewFile(file, text);
    const contents = parts.map(({ title }) => title);
    const shown = [`${file} has:`, ...contents.map((title) => `  ${title}`), 'Read it before you send it.'];
    return await output.result({ file, bytes: Buffer.byteLength(text), contents }, shown.join('\n'));
  },
});

function readLog(file: string): string {
  try {
    return file === '-' ? readFileOrInput(file) : readEnd(file);
  } catch (error) {
    throw new CommandError([`latchkey: cannot read ${file}: ${formatReason(error)}`]);
  }
}

/** The last lines of a file, which may be large. */
function readEnd(path: string): string {
  const { size } = statSync(path);
  if (size <= logBytes) return readNamedFile(path);
  const file = openSync(path, 'r');
  try {
    const end = Buffer.alloc(logBytes);
    const bytes = readSync(file, end, 0, logBytes, size - logBytes);
    const text = end.toString('utf8', 0, bytes);
    return text.slice(text.indexOf('\n') + 1);
  } finally {
    closeSync(file);
  }
}

async function partsOf(
  args: GlobalOptions,
  loaded: ConfigurationResult,
  log: string | null,
  secrets: readonly string[],
): Promise<readonly Part[]> {
  // A daemon that hangs is waited for once.
  const [status, findings] = await Promise.all([statusText(args), examineAll(args)]);
  return [
    { title: 'Version and platform', text: await versionText() },
    { title: 'Configuration, with secrets masked', text: configurationText(loaded) },
    { title: 'Status of the daemon', text: status },
    { title: 'What latchkey doctor finds', text: formatFindings(findings) },
    { title: 'How many records and changes are stored', text: await countsText(args) },
    {
      title: log === null ? 'Log: not added' : `Log: the last ${logLines} lines`,
      text: logText(log, secrets),
    },
  ];
}

function render(parts: readonly Part[], now: Date): string {
  const contents = parts.map(({ title }, index) => `  ${index + 1}. ${title}`);
  const sections = parts.map(({ title, text }, index) => `== ${index + 1}. ${title} ==\n\n${text.trim()}`);
  const head = [
    `For support: what latchkey support wrote at ${now.toISOString()}.`,
    '',
    'Read it before you send it. Masked are the secrets of the configuration, and what looks like a secret,',
    'a license key or an e-mail address. It has addresses of servers, keys of products and paths of files.',
    'In it are:',
    '',
    ...contents,
  ];
  return `${toVisibleLines([head.join('\n'), ...sections].join('\n\n'))}\n`;
}

async function versionText(): Promise<string> {
  const { describeBuild } = await import('../../daemon/build.ts');
  const facts = {
    ...describeBuild(),
    system: release(),
    memory: `${Math.round(totalmem() / 1024 ** 2)} MiB`,
  };
  return linesOf(Object.entries(facts));
}

function configurationText(loaded: ConfigurationResult): string {
  if (!loaded.ok) {
    const why = 'The configuration is not valid, so that its secrets are not known:';
    return [why, ...formatConfigErrors(loaded.errors)].join('\n');
  }
  const values = leavesOf(effective(loaded.configuration)).map(([path, value]) => {
    const key = formatKey(path);
    return [key, key === deviceName && value !== null ? mask : value] as const;
  });
  return `From ${formatSource(loaded)}, role ${loaded.configuration.role}:\n${linesOf(values)}`;
}

async function statusText(args: GlobalOptions): Promise<string> {
  const called = await callDaemon(args, { path: '/statusz' }, true);
  if (!called.ok)
    return ['No status: the daemon was not asked, or did not answer.', ...called.lines].join('\n');
  const read = statusObject.safeParse(called.answer.body);
  return read.success ? toSafeJson(read.data) : `The status could not be read: HTTP ${called.answer.status}.`;
}

async function countsText(args: GlobalOptions): Promise<string> {
  const located = locateDaemon(toLoadOptions(args));
  if (!located.ok) return 'Not known, because the configuration is not valid.';
  const { stateDir, engine } = located.location;
  const { examineContents } = await import('../../daemon/store/contents.ts');
  const examined = examineContents(stateDir);
  if (!examined.ok) return `Not known: ${examined.reason}`;
  const { role, unfinished, unconfirmedUses, records } = examined.contents;
  const counts = linesOf(
    Object.entries({ role, ...records, ...unfinished, 'unconfirmed uses': unconfirmedUses }),
  );
  return engine === null ? counts : `The records are in ${engine.place}. In the state directory:\n${counts}`;
}

function logText(log: string | null, secrets: readonly string[]): string {
  if (log !== null) return maskedLog(log, logLines, secrets).join('\n') || 'The log is empty.';
  return [
    'The daemon writes its log to standard output. What starts the daemon, such as systemd, stores the log.',
    'With systemd: journalctl -u latchkey -n 200 -o cat | latchkey support --log -',
    'With a file: latchkey support --log FILE',
  ].join('\n');
}

function linesOf(entries: readonly (readonly [string, unknown])[]): string {
  return entries.map(([name, value]) => `${name}: ${String(value)}`).join('\n');
}
