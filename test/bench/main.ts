/**
 * `npm run bench`: how fast Latchkey is, as ratios to reference servers that are measured in the same rounds.
 * Every server, and every load, is a process of its own on loopback.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { cpus, release, totalmem } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Bench, fullEffort, quickEffort } from './bench.ts';
import { hasWrk } from './load/wrk.ts';
import { buildWhereStale, isThere, root, type Form } from './program.ts';
import { textLine, withTable } from './table.ts';
import type { Row, Theme } from './theme.ts';
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

if (values.help) process.stdout.write(help);
else process.exitCode = await run(chosenForm(values.form), chosenThemes(positionals));

async function run(form: Form, chosen: readonly Theme[]): Promise<number> {
  if (form === 'build') buildWhereStale();
  if (!isThere(form)) throw new Error(`There is no ${form}: see package.json, build:${form}`);
  process.stdout.write(`${machine()}; ${form}; TCP load by ${hasWrk ? 'wrk' : 'its own generator'}\n\n`);
  await using bench = new Bench(form, values.quick ? quickEffort : fullEffort);
  const rows: (Row & { theme: string })[] = [];
  let failed = 0;
  for (const theme of chosen) {
    try {
      for await (const row of theme.measure(bench)) {
        rows.push({ theme: theme.name, ...row });
        process.stdout.write(`${textLine(row)}\n`);
      }
    } catch (error) {
      failed += 1;
      process.stderr.write(`${theme.name}: ${error instanceof Error ? error.stack : String(error)}\n`);
    }
    await bench.stopServers();
  }
  const about = { at: new Date().toISOString(), machine: machine(), form, quick: values.quick, wrk: hasWrk };
  writeFileSync(values.json, `${JSON.stringify({ ...about, rows }, null, 2)}\n`);
  if (values.markdown !== undefined) {
    const text = readFileSync(values.markdown, 'utf8');
    writeFileSync(values.markdown, withTable(text, { machine: machine(), rows }));
  }
  return failed === 0 ? 0 : 1;
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

function machine(): string {
  const { model = 'unknown processor' } = cpus()[0] ?? {};
  const memory = Math.round(totalmem() / 2 ** 30);
  return `${cpus().length} × ${model}, ${memory} GiB, ${process.platform} ${release()}, Node ${process.versions.node}`;
}
