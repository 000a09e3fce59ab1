/**
 * `npm run bench` measures Latchkey as ratios to reference servers that are measured in the same rounds. Every server
 * and every load generator is a process on loopback.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { cpus, loadavg, release, totalmem } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Bench, fullEffort, quickEffort } from './bench.ts';
import { hasWrk } from './load/wrk.ts';
import { buildWhereStale, isFresh, isThere, root, type Form } from './program.ts';
import { textLine, withTable, type ThemeRow } from './table.ts';
import type { Theme } from './theme.ts';
import { themes } from './themes/all.ts';

const resultFile = join(root, 'dist/bench/results.json');
const help = `npm run bench -- [themes] [options]

Themes (without any, all but those in brackets):
${themes.map(({ name, about, isExtra }) => `  ${(isExtra ? `[${name}]` : name).padEnd(12)} ${about}`).join('\n')}

Options:
  --form FORM   build (default; built first where it is missing or old), executable or source
  --quick       A tiny load, to see that everything works; the figures say nothing
  --markdown FILE
                Put the table into a Markdown file, such as README.md, between its marks
  --json FILE   Where the rows are written, too (default: ${resultFile})
  -h, --help    Show help
`;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    form: { type: 'string', default: 'build' },
    quick: { type: 'boolean', default: false },
    json: { type: 'string', default: resultFile },
    markdown: { type: 'string' },
    help: { type: 'boolean', short: 'h', default: false },
  },
});

// Runs the exit handlers, which remove processes and files.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));

if (values.help) process.stdout.write(help);
else process.exitCode = await run(chosenForm(values.form), chosenThemes(positionals));

async function run(form: Form, chosen: readonly Theme[]): Promise<number> {
  if (form === 'build') buildWhereStale();
  if (!isThere(form)) throw new Error(`There is no ${form}: see package.json, build:${form}`);
  const about = {
    at: new Date().toISOString(),
    commit: commit(),
    machine: machine(),
    form,
    quick: values.quick,
    loadGenerator: hasWrk ? 'wrk' : 'own',
    loadAverage: loadavg()[0] ?? Number.NaN,
  };
  process.stdout.write(`${headOf(about)}\n`);
  const { rows, failed } = await measure(form, chosen);
  const seconds = Math.round(performance.now() / 1000);
  process.stdout.write(`\n${seconds} s; written to ${values.json}\n`);
  writeFileSync(values.json, `${JSON.stringify({ ...about, seconds, rows }, null, 2)}\n`);
  if (values.markdown !== undefined) {
    const text = readFileSync(values.markdown, 'utf8');
    writeFileSync(values.markdown, withTable(text, { heading: headingOf(about), rows }));
  }
  return failed ? 1 : 0;
}

type Measurement = { rows: ThemeRow[]; failed: boolean };

async function measure(form: Form, chosen: readonly Theme[]): Promise<Measurement> {
  await using bench = new Bench(form, values.quick ? quickEffort : fullEffort);
  const rows: Measurement['rows'] = [];
  let failed = false;
  for (const theme of chosen) {
    try {
      for await (const row of theme.measure(bench)) {
        rows.push({ theme: theme.name, ...row });
        process.stdout.write(`${textLine(row)}\n`);
      }
    } catch (error) {
      failed = true;
      process.stderr.write(`${theme.name}: ${error instanceof Error ? error.stack : String(error)}\n`);
    }
    await bench.stopServers();
  }
  return { rows, failed };
}

type About = {
  at: string;
  commit: string;
  machine: string;
  form: Form;
  loadGenerator: string;
  loadAverage: number;
};

/** The commit, the date, the machine and the form, and whether other programs ran, which affects every figure. */
function headingOf({
  at,
  commit: revision,
  machine: where,
  form,
  loadGenerator,
  loadAverage,
}: About): string {
  const others = loadAverage > 1 ? `, while other programs ran (load average ${loadAverage.toFixed(1)})` : '';
  return `Commit ${revision}, ${at.slice(0, 10)}, ${where}; ${form}; TCP load by ${loadGenerator}${others}`;
}

function headOf(about: About): string {
  const lines = [headingOf(about)];
  if (about.form === 'build' && isThere('executable') && !isFresh('executable')) {
    lines.push('The executable is older than the sources, and not measured: npm run build:executable');
  }
  return `${lines.join('\n')}\n`;
}

function chosenForm(name: string): Form {
  if (name === 'build' || name === 'executable' || name === 'source') return name;
  throw new Error(`There is no form ${name}.\n${help}`);
}

function chosenThemes(names: readonly string[]): readonly Theme[] {
  if (names.length === 0) return themes.filter(({ isExtra }) => isExtra !== true);
  return names.map((name) => {
    const theme = themes.find((each) => each.name === name);
    if (theme === undefined) throw new Error(`There is no theme ${name}.\n${help}`);
    return theme;
  });
}

/** The short name of the commit, and whether the source has changes that are not in the commit. */
function commit(): string {
  const git = (...args: string[]): string =>
    execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim();
  try {
    const changes = git('status', '--porcelain', '--', 'src', 'package-lock.json');
    return `${git('rev-parse', '--short=8', 'HEAD')}${changes === '' ? '' : ' with changes'}`;
  } catch {
    return 'unknown';
  }
}

function machine(): string {
  const { model = 'unknown processor' } = cpus()[0] ?? {};
  const memory = Math.round(totalmem() / 2 ** 30);
  return `${cpus().length} × ${model}, ${memory} GiB, ${process.platform} ${release()}, Node ${process.versions.node}`;
}
