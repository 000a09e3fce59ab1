import { formatConfigError } from '../../config/errors.ts';
import { fail, type Finding, ok, warn } from '../../domain/finding.ts';
import { loadConfiguration } from '../../config/load.ts';
import { defineCommand, type GlobalOptions } from '../command.ts';
import { exitCode } from '../exit-code.ts';
import { instanceOf, otherVersion } from '../client/endpoint.ts';
import { callDaemon, type Failure } from '../client/daemon.ts';
import { formatFindings } from '../format.ts';
import { formatSource, toLoadOptions } from '../configuration.ts';
import { hintFor, startCommand } from '../hint.ts';
import { healthObject, statusObject } from '../../wire/status.ts';

export const command = defineCommand({
  command: 'doctor',
  describe: 'Find problems, and say what to do',
  builder: {},
  examples: [['latchkey doctor', 'what is fine, what is not, and what to do about it']],
  handler: async (args, output) => {
    const findings = await examineAll(args);
    const isWell = findings.every(({ level }) => level !== 'fail');
    await output.result({ ok: isWell, findings }, formatFindings(findings));
    return isWell ? exitCode.done : exitCode.failed;
  },
});

export async function examineAll(options: GlobalOptions): Promise<readonly Finding[]> {
  const loaded = loadConfiguration(toLoadOptions(options));
  if (!loaded.ok)
    return loaded.errors.map((error) =>
      fail(formatConfigError(error), 'correct it: nothing else was checked'),
    );
  const { configuration } = loaded;
  const start = await startCommand(options, configuration.stateDir);
  const daemon = await examineDaemon(options, start, configuration.sync.maxPending);
  const { examine } = await import('../../daemon/doctor/examination.ts');
  const others = await examine({
    configuration,
    secretFiles: loaded.secretFiles,
    fileWithSecrets: loaded.fileWithSecrets,
    presence: daemon.presence,
    instance: instanceOf(configuration.stateDir),
    shownUntil: daemon.shownUntil,
    hint: hintFor(options),
    start,
  });
  return [
    ok(`the configuration is sound: ${formatSource(loaded)} (${configuration.role})`),
    ...daemon.findings,
    ...others,
  ];
}

/** `shownUntil`: when the daemon's certificate ends; null if it has none. */
interface DaemonFindings {
  readonly findings: readonly Finding[];
  readonly shownUntil: string | null;
}

async function examineDaemon(
  options: GlobalOptions,
  start: string,
  maxPending: number,
): Promise<DaemonFindings & { presence: 'running' | 'absent' | 'unknown' }> {
  const ready = await callDaemon(options, { path: '/readyz' }, false);
  if (!ready.ok) {
    const { code, isSilent, isLocked, isUnproven } = ready;
    const isAbsent = code === exitCode.unreachable && !isSilent && !isLocked && !isUnproven;
    const presence = isAbsent ? 'absent' : 'unknown';
    return { presence, findings: [explainAbsence(ready, start)], shownUntil: null };
  }
  const running = { presence: 'running' } as const;
  const { status: state, reasons } = healthObject.parse(ready.answer.body);
  const { examineReadiness } = await import('../../daemon/doctor/status.ts');
  const finding = examineReadiness({ isReady: state === 'ok', reasons }, hintFor(options));
  // The status would be read from the damaged store.
  if (reasons.includes('store_damaged')) return { ...running, findings: [finding], shownUntil: null };
  const { findings, shownUntil } = await readStatus(options, maxPending);
  return { ...running, findings: [finding, ...findings], shownUntil };
}

const adviceOnUnproven = 'see what listens there, and restart the daemon';

function explainAbsence(failure: Failure, start: string): Finding {
  const { code, lines, tried, isSilent, isLocked, isUnproven } = failure;
  if (isUnproven) return warn(joinLines(lines), adviceOnUnproven);
  if (isLocked) {
    const what = ['a process has locked the state directory, and cannot be reached', ...tried].join('; ');
    return fail(what, `see its log, or end its process, then start it: ${start}`);
  }
  if (isSilent) {
    const what = ['the daemon accepts connections and does not respond', ...tried].join('; ');
    return fail(what, `it hangs: end its process, then start it: ${start}`);
  }
  if (code === exitCode.unreachable) {
    return warn(['no daemon runs here', ...tried].join('; '), `start it: ${start}`);
  }
  const isOfOtherVersion = lines.some((line) => line.endsWith(otherVersion));
  return warn(
    joinLines(lines),
    isOfOtherVersion ? 'restart it' : 'run this as the user that runs the daemon, or as root',
  );
}

function joinLines(lines: readonly string[]): string {
  const sentences = lines.map((line) => line.replace('latchkey: ', '').replace(/[^.?]$/, '$&.'));
  return sentences.join(' ').replace(/\.$/, '');
}

async function readStatus(options: GlobalOptions, maxPending: number): Promise<DaemonFindings> {
  const hint = hintFor(options);
  const called = await callDaemon(options, { path: '/statusz' }, true);
  const unknown = (what: string, advice: string): DaemonFindings => ({
    findings: [warn(what, advice)],
    shownUntil: null,
  });
  if (!called.ok) {
    const advice =
      called.code === exitCode.unreachable
        ? adviceOnUnproven
        : 'run this as the user that runs the daemon, or as root';
    return unknown(joinLines(called.lines), advice);
  }
  const read = statusObject.safeParse(called.answer.body);
  if (!read.success) return unknown('its status could not be read', otherVersion);
  const { listeners } = read.data;
  const { examineStatus } = await import('../../daemon/doctor/status.ts');
  const findings = examineStatus(read.data, hint, maxPending);
  return { findings, shownUntil: listeners.tls?.not_after ?? null };
}
