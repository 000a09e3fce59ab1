import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { command, defineCommand, textOption, type CommandEntry } from '../../src/cli/command.ts';
import { commands } from '../../src/cli/commands.ts';
import { camelCase } from '../../src/cli/syntax/declaration.ts';
import { newestSchema } from '../../src/store/sqlite/files/migrations.ts';
import { latchkey } from '../support/process/command-line.ts';
import { temporaryDirectory } from '../support/temporary.ts';

test('without arguments the help is printed, and the exit code is that of misuse', async () => {
  const { code, out } = await latchkey();
  expect(code).toBe(2);
  const text = out.replaceAll(/\s+/g, ' ');
  for (const { summary } of commands) expect(text).toContain(summary);
});

test('the help of a command is found by -h, --help and help', async () => {
  const help = await latchkey('outbox', 'retry', '--help');
  expect(help).toMatchObject({ code: 0, err: '' });
  expect(help.out).toMatch(/^latchkey outbox retry <id>\n\nSend a change again/);
  expect(await latchkey('outbox', 'retry', '-h')).toEqual(help);
  expect(await latchkey('-h', 'outbox', 'retry', 'X')).toEqual(help);
  expect(await latchkey('help', 'outbox', 'retry')).toEqual(help);
  expect((await latchkey('help', 'outbox')).out).toContain('  retry <id>    Send a change again');
  expect((await latchkey('help')).out).toBe((await latchkey('-h')).out);
});

test('a help is as wide as the terminal, but 100 columns at most, and 80 in a pipe', async () => {
  const { stdout } = process;
  const before = Object.getOwnPropertyDescriptor(stdout, 'columns');
  const widthAt = async (columns: number | undefined): Promise<number> => {
    Object.defineProperty(stdout, 'columns', { value: columns, configurable: true });
    const { out } = await latchkey('license', 'import', '--help');
    return Math.max(...out.split('\n').map((line) => line.length));
  };
  try {
    const widths = [await widthAt(undefined), await widthAt(80), await widthAt(300), await widthAt(100)];
    expect(widths[0]).toBeLessThanOrEqual(80);
    expect(widths[1]).toBe(widths[0]);
    expect(widths[2]).toBeGreaterThan(80);
    expect(widths[3]).toBe(widths[2]);
  } finally {
    if (before === undefined) Reflect.deleteProperty(stdout, 'columns');
    else Object.defineProperty(stdout, 'columns', before);
  }
});

test('a bug report has what runs, and on what', async () => {
  const { out } = await latchkey('version', '--json');
  const { version } = JSON.parse(await readFile('package.json', 'utf8')) as { version: string };
  expect(JSON.parse(out)).toEqual({
    version,
    node: process.versions.node,
    sqlite: process.versions['sqlite'],
    platform: `${process.platform}-${process.arch}`,
    schema: newestSchema,
    build: 'source',
  });
  expect(await latchkey('-v')).toEqual({ code: 0, out: `${version}\n`, err: '' });
  expect((await latchkey('--version')).out).toBe(`${version}\n`);
});

test.each([
  ['verfy K', 'Unknown command: verfy. Did you mean verify?', ''],
  ['start', 'Unknown command: start. Did you mean serve?', ''],
  ['run', 'Unknown command: run. Did you mean serve?', ''],
  ['up', 'Unknown command: up. Did you mean serve?', ''],
  ['daemon', 'Unknown command: daemon. Did you mean serve?', ''],
  ['coupon get 7', 'Unknown command: coupon get. Did you mean show?', 'coupon'],
  ['token ls', 'Unknown command: token ls. Did you mean list?', 'token'],
  ['token create', 'Unknown command: token create. Did you mean issue?', 'token'],
  ['product new', 'Unknown command: product new. Did you mean add?', 'product'],
  ['token delete T', 'Unknown command: token delete. Did you mean revoke?', 'token'],
  ['constructor', 'Unknown command: constructor', ''],
  ['coupon lst', 'Unknown command: coupon lst. Did you mean list?', 'coupon'],
  ['help outbox rety', 'Did you mean retry?', 'outbox'],
  ['frobnicate', 'Unknown command: frobnicate', ''],
  ['verify', '<key> is missing: License key', 'verify'],
  ['outbox show X L', 'Unexpected argument: L', 'outbox show'],
  ['outbox show -- K -L', 'Unexpected argument: -L', 'outbox show'],
  ['verify K --frob', 'Unknown option: --frob', 'verify'],
  ['verify -KEY-hvh', 'Unknown option: -KEY-hvh. An argument', 'verify'],
  ['verify -KEY', 'An argument that begins with a dash is written after --', 'verify'],
  ['outbox list --sate dead', 'Unknown option: --sate. Did you mean --state?', 'outbox list'],
  ['verify K --config', '--config needs a value', 'verify'],
  ['verify K --config --state-dir x', '--config needs a value', 'verify'],
  ['verify K --config a --config b', '--config is given twice', 'verify'],
  ['outbox retry', '<id> is missing: Id of the change', 'outbox retry'],
  ['coupon', 'coupon needs a command: create, list, show', 'coupon'],
  ['coupon create --code X', '--type is missing: Holds for', 'coupon create'],
  ['outbox list --state ded', '--state must be one of pending,', 'outbox list'],
  ['outbox list --state ded', 'Did you mean dead?', 'outbox list'],
  ['outbox list --limit many', '--limit must be a number', 'outbox list'],
  ['status --check=maybe', '--check takes no value', 'status'],
  ['sandbox --latency long', '--latency must be a duration', 'sandbox'],
  ['sandbox --error-rate 2', '--error-rate must be a number from 0 to 1', 'sandbox'],
  ['sandbox --port -1', '--port must be a whole number from 0 to 65535', 'sandbox'],
  ['sandbox --port 1.5', '--port must be a whole number from 0 to 65535', 'sandbox'],
  ['sandbox --port 65536', '--port must be a whole number from 0 to 65535', 'sandbox'],
  ['--config x', 'A command is missing', ''],
])('%s is misuse: a line that says so, and where the help is', async (line, message, helped) => {
  const { code, out, err } = await latchkey(...line.split(' '));
  expect({ code, out }).toEqual({ code: 2, out: '' });
  expect(err).toContain(message);
  expect(err).toMatch(/^latchkey: [^\n]+\nSee: [^\n]+\n$/);
  expect(err).toContain(`See: ${`latchkey ${helped}`.trim()} --help\n`);
  const machine = await latchkey('--json', ...line.split(' '));
  expect(machine).toMatchObject({ code: 2, out: '' });
  expect(JSON.parse(machine.err)).toMatchObject({ error: { code: 'usage', exit_code: 2 } });
});

test('a command can have an option of any name, and is given its value', async () => {
  const noted = defineCommand(
    (syntax) => syntax.options({ note: textOption('A note') }),
    async ({ note }, output) => {
      output.print(`noted: ${note}`);
      return 0;
    },
  );
  const all = commands as CommandEntry[];
  all.push(command('noted', 'Note something', async () => noted));
  try {
    expect(await latchkey('noted', '--note', 'hello')).toEqual({ code: 0, out: 'noted: hello\n', err: '' });
  } finally {
    all.pop();
  }
});

test('no command has an option or argument of the same name as another, or as an option of every command', async () => {
  const everywhere = ['config', 'state-dir', 'json', 'help'];
  const read = async (entries: readonly CommandEntry[]): Promise<string[]> => {
    const found: string[] = [];
    for (const entry of entries) {
      if ('members' in entry) {
        found.push(...(await read(entry.members)));
        continue;
      }
      const { options, operands } = (await entry.load()).declaration;
      const names = [...everywhere, ...options.keys(), ...operands.keys()].map(camelCase);
      const twice = names.filter((name, index) => names.indexOf(name) !== index);
      found.push(...twice.map((name) => `${entry.usage}: ${name}`));
    }
    return found;
  };
  expect(await read(commands)).toEqual([]);
});

test('config check says ok and which file it read', async () => {
  await using directory = temporaryDirectory();
  const file = join(directory.path, 'config.yaml');
  await writeFile(file, 'log: { level: debug }\n');
  expect(await latchkey('config', 'check', '--config', file)).toEqual({
    code: 0,
    out: `ok: ${file} (authority)\n`,
    err: '',
  });
  const machine = await latchkey('config', 'check', '--config', file, '--json');
  expect(JSON.parse(machine.out)).toEqual({ ok: true, file, role: 'authority' });
});

test('config check tells each fault in a line', async () => {
  await using directory = temporaryDirectory();
  const file = join(directory.path, 'config.yaml');
  await writeFile(file, 'limts: {}\nlog: { level: loud }\n');
  const { code, out, err } = await latchkey('config', 'check', '--config', file);
  expect({ code, out }).toEqual({ code: 78, out: '' });
  expect(err.trimEnd().split('\n')).toHaveLength(2);
  expect(err).toContain('did you mean limits?');
  const machine = await latchkey('config', 'check', '--config', file, '--json');
  expect(machine.code).toBe(78);
  expect(JSON.parse(machine.out)).toMatchObject({ ok: false, faults: [{}, {}] });
});

test('config show masks secrets', async () => {
  await using directory = temporaryDirectory();
  const file = join(directory.path, 'config.yaml');
  await writeFile(
    file,
    'upstream: { base_url: "https://api.example.com", api_key: CANARY }\nproducts: [{ key: RGsF, secret: CANARY }]\n',
  );
  const text = await latchkey('config', 'show', '--config', file);
  expect(text.out).toContain('products[0].secret');
  expect(text.out).toMatch(/upstream\.api_key +\*\*\*\n/);
  const machine = await latchkey('config', 'show', '--config', file, '--json');
  expect(JSON.parse(machine.out)).toMatchObject({ products: [{ key: 'RGsF', secret: '***' }] });
  expect(text.out + machine.out).not.toContain('CANARY');
});

test('serve lays its flags over the configuration, and does not start with a faulty one', async () => {
  await using directory = temporaryDirectory();
  const listen = ['--listen', '8.8.8.8:1', '--socket', 'x'.repeat(200)];
  const other = ['--upstream-url', 'nonsense', '--log-level', 'loud', '--log-format', 'prose'];
  const { code, err } = await latchkey('serve', '--state-dir', directory.path, ...listen, ...other);
  expect(code).toBe(78);
  const keys = ['upstream.base_url', 'listen.tcp', 'listen.socket', 'log.level', 'log.format'];
  expect(err.trimEnd().split('\n').sort()).toEqual(
    keys.sort().map((key) => expect.stringMatching(`^latchkey: configuration: ${key}: .*\\(from flag\\)$`)),
  );
});

test('a listener is switched off by the word false', async () => {
  await using directory = temporaryDirectory();
  const off = ['--listen', 'false', '--socket', 'false'];
  const { code, err } = await latchkey('serve', '--state-dir', directory.path, ...off);
  expect(code).toBe(78);
  expect(err).toContain('nobody could connect');
});
