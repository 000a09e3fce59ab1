import { readFileSync } from 'node:fs';
import type { Reporter, TestCase, TestModule, TestSuite } from 'vitest/node';

/**
 * What the conditions of `skipIf` mean, in words for people who read the end of a run. `runIf(condition)` has the same
 * meaning as `skipIf(!condition)`.
 */
export const reasons: Readonly<Record<string, string>> = {
  '!(!isWindows && existsSync(descriptors))': 'the system has no /proc',
  "!(process.platform === 'linux')": 'the test is about Linux',
  "!(spawnSync('mkfifo', ['--version']).status === 0)": 'mkfifo is not installed',
  '!hasAnalyze': 'systemd-analyze is not installed',
  '!hasTracer': 'strace is not installed (apt-get install strace), or the user is not root',
  '!isLinux': 'the test is about Linux',
  '!canMount': 'mounting a file system needs root on Linux',
  '!canTest': 'Chromium or script is not installed',
  "!hasProgram('curl')": 'curl is not installed',
  "!hasProgram('lintian')": 'lintian is not installed',
  "!hasProgram('script')": 'script is not installed',
  "!hasProgram('systemd-analyze')": 'systemd is not installed',
  '!hasProgram(program)': 'the program is not installed',
  '!hasNamespaces':
    'hiding /proc from a process needs namespaces (unshare --mount), which this user may not create',
  '!hasNginx': 'nginx is not installed (apt-get install nginx)',
  '!hasPooler': 'PgBouncer is not installed (apt-get install pgbouncer)',
  '!hasPostgres': 'PostgreSQL is not installed (apt-get install postgresql)',
  '!hasPostgres || !hasBalancer': 'PostgreSQL or HAProxy is not installed',
  '!hasPostgres || !hasPooler': 'PostgreSQL or PgBouncer is not installed',
  '!hasPython': 'Python is not installed',
  '!hasTool': 'osslsigncode is not installed',
  '!isBrowserInstalled': 'Chromium is not installed at /usr/bin/chromium',
  "!isBuildable || process.arch !== 'x64'": 'the executable for arm64 is built on Linux on x64',
  '!isBuildable': 'the executable is built on Linux only',
  '!isEmulated': 'qemu-user-static is not installed, which runs programs for arm64',
  '!isInstalled': 'the program is not installed',
  '!isRoot': 'the test needs root',
  '!isSystemdInstalled': 'systemd is not installed',
  "!shell.isInstalled('fish')": 'fish is not installed',
  "!shell.isInstalled('zsh')": 'zsh is not installed',
  'engineOfProject !== null': 'the test is about SQLite',
  'example.nonce === null': 'the example makes no nonce that could be replaced',
  isMissing: 'the program is not installed',
  isPtyMissing: 'script is not installed',
  isWindows: 'the test is about POSIX systems',
  'library === undefined': 'libfaketime is not installed (apt-get install libfaketime)',
  "missing !== ''": 'the program is not installed',
  'missing !== null': 'the machine lacks what the test needs',
  'missingForCleanRoot !== null': 'a clean root needs debootstrap and root',
  'missingForPackage !== null': 'the Debian package needs dpkg-dev and root',
  'process.getuid?.() !== 0': 'the test needs root',
  'process.getuid?.() === 0': 'the test needs a user without the rights of root',
  "process.platform !== 'linux'": 'the test is about Linux',
  "process.platform === 'win32'": 'the test is about POSIX systems',
  'wine === null': 'Wine is not installed (apt-get install mmdebstrap)',
};

/**
 * A reporter of vitest that prints once, at the end of a run, how many tests were skipped and why: a green run says
 * nothing about them.
 */
export class NotTestedReporter implements Reporter {
  readonly #projectsLeftOut: readonly string[];

  /** @param projectsLeftOut Reasons why whole projects do not run on this machine. */
  constructor(projectsLeftOut: readonly string[]) {
    this.#projectsLeftOut = projectsLeftOut;
  }

  onTestRunEnd(modules: readonly TestModule[]): void {
    const counts = new Map<string, number>();
    for (const module of modules) {
      for (const test of module.children.allTests('skipped')) {
        const reason = reasonOf(test);
        if (reason !== null) counts.set(reason, (counts.get(reason) ?? 0) + 1);
      }
    }
    const lines = [...counts]
      .toSorted(([, one], [, other]) => other - one)
      .map(([reason, count]) => `${String(count).padStart(5)}  ${reason}`);
    const projects = this.#projectsLeftOut.map((reason) => `  all   ${reason}`);
    if (lines.length + projects.length === 0) return;
    process.stdout.write(`\n Not tested here:\n${[...projects, ...lines].join('\n')}\n`);
  }
}

/** Why a test was skipped. Null: the command line did not ask for the test. */
function reasonOf(test: TestCase): string | null {
  const { note } = test.result() as { note?: string };
  if (note !== undefined) return note;
  for (const task of chainOf(test)) {
    if (task.options.mode !== 'skip' || task.location === undefined) continue;
    const inName = /\(skipped: (.+)\)$/.exec(task.name)?.[1];
    const condition = conditionAt(test.module.moduleId, task.location.line);
    if (condition !== null) return inName ?? reasons[condition] ?? condition;
  }
  return null;
}

/** The suites of a test from the outermost on, then the test. */
function chainOf(test: TestCase): (TestCase | TestSuite)[] {
  const chain: (TestCase | TestSuite)[] = [test];
  for (let parent = test.parent; parent.type === 'suite'; parent = parent.parent) chain.unshift(parent);
  return chain;
}

/** The condition of the `skipIf` or `runIf` that begins a line of a test file, or the lines before that line. */
function conditionAt(file: string, line: number): string | null {
  const before = readFileSync(file, 'utf8').split('\n').slice(0, line).join('\n');
  return conditionsOf(before).at(-1) ?? null;
}

/** The condition of every `skipIf`, and the opposite of the condition of every `runIf`, in the text of a test file. */
export function conditionsOf(text: string): string[] {
  return [...text.matchAll(/\.(skipIf|runIf)\(((?:[^()]|\([^()]*\))+)\)/g)].map(([, name, condition = '']) =>
    name === 'skipIf' ? condition.trim() : opposite(condition.trim()),
  );
}

function opposite(condition: string): string {
  return /^\w+$/.test(condition) ? `!${condition}` : `!(${condition})`;
}
