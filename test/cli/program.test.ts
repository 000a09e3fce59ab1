import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { globalOptions, nameOf } from '../../src/cli/command.ts';
import { parseArguments } from '../../src/cli/command-line.ts';
import { commands } from '../../src/cli/commands.ts';
import { newestSchema } from '../../src/store/sqlite/files/migrations.ts';
import { everyPlace } from '../support/app/every-command.ts';
import { latchkey } from '../support/process/command-line.ts';
import { temporaryDirectory } from '../support/temporary.ts';

test('without arguments latchkey prints its help and exits with 2', async () => {
  const { code, out } = await latchkey();
  expect(code).toBe(2);
  expect(out).toBe((await latchkey('--help')).out);
});

test('the help of the program names every command once, in groups, and fits on a screen', async () => {
  const { out } = await latchkey('--help');
  const lines = out.trimEnd().split('\n');
  expect(lines.length).toBeLessThanOrEqual(45);
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(80);
  const titles = lines.filter((line) => /^\w.*:$/.test(line));
  expect(titles).toEqual(['Run:', 'Use license keys:', 'Sell:', 'Lease:', 'Look after:', 'Options:']);
  const words = lines.flatMap((line) => /^ {2}([a-z][a-z, -]*?) {2,}\S/.exec(line)?.[1]?.split(', ') ?? []);
  expect(words.toSorted()).toEqual(commands.map(({ name }) => name).toSorted());
});

test('-h, --help and the command help print the same help', async () => {
  const help = await latchkey('outbox', 'retry', '--help');
  expect(help).toMatchObject({ code: 0, err: '' });
  expect(help.out).toMatch(/^latchkey outbox retry <id>\n\nSend a change again/);
  expect(await latchkey('outbox', 'retry', '-h')).toEqual(help);
  expect(await latchkey('-h', 'outbox', 'retry', 'X')).toEqual(help);
  expect(await latchkey('help', 'outbox', 'retry')).toEqual(help);
  expect((await latchkey('help', 'outbox')).out).toMatch(/latchkey outbox retry <id> +Send a change again/);
  expect((await latchkey('help')).out).toBe((await latchkey('-h')).out);
});

test('the help is as wide as the terminal, at most 100 columns, and 80 columns in a pipe', async () => {
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

test('version --json prints what a bug report needs', async () => {
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
  ['verify', 'An argument is missing: verify <key..>', 'verify'],
  ['outbox show X L', 'Unexpected argument: L', 'outbox show'],
  ['outbox show -- K -L', 'Unexpected argument: -L', 'outbox show'],
  ['verify K --frob', 'Unknown option: --frob', 'verify'],
  ['verify -KEY-hvh', 'Unknown option: -KEY-hvh. An argument', 'verify'],
  ['verify -KEY', 'An argument that begins with a dash is written after --', 'verify'],
  ['outbox list --sate dead', 'Unknown option: --sate. Did you mean --state?', 'outbox list'],
  ['verify K --config', '--config needs a value', 'verify'],
  ['verify K --config --state-dir x', '--config needs a value', 'verify'],
  ['verify K --config a --config b', '--config is given twice', 'verify'],
  ['outbox retry', 'An argument is missing: retry <id>', 'outbox retry'],
  ['coupon', 'coupon needs a command: create, list, show', 'coupon'],
  ['coupon create --code X', '--type is required', 'coupon create'],
  ['outbox list --state ded', '--state must be one of pending,', 'outbox list'],
  ['outbox list --state ded', 'Did you mean dead?', 'outbox list'],
  ['outbox list --limit many', '--limit must be a number', 'outbox list'],
  ['status --check=maybe', '--check takes no value', 'status'],
  ['--config x', 'A command is missing', ''],
])('latchkey %s fails with a line that names the mistake and the help', async (line, message, helped) => {
  const { code, out, err } = await latchkey(...line.split(' '));
  expect({ code, out }).toEqual({ code: 2, out: '' });
  expect(err).toContain(message);
  expect(err).toMatch(/^latchkey: [^\n]+\nSee: [^\n]+\n$/);
  expect(err).toContain(`See: ${`latchkey ${helped}`.trim()} --help\n`);
  const machine = await latchkey('--json', ...line.split(' '));
  expect(machine).toMatchObject({ code: 2, out: '' });
  expect(JSON.parse(machine.err)).toMatchObject({ error: { code: 'usage', exit_code: 2 } });
});

test('the name in the list of commands is the one in the module, and no option has the name of a global option', async () => {
  const loaded = await Promise.all(commands.map(({ load }) => load()));
  expect(loaded.map(nameOf)).toEqual(commands.map(({ name }) => name));
  const reserved = new Set([...Object.keys(globalOptions), 'warn']);
  const taken = (await everyPlace()).flatMap(({ words, found }) =>
    'commands' in found
      ? []
      : Object.keys(found.builder)
          .filter((option) => reserved.has(option))
          .map((option) => [...words, option].join(' ')),
  );
  expect(taken).toEqual([]);
});

test.each([
  ['--json before a command', ['--json', 'config', 'show'], 0],
  ['an option before its command', ['--check', 'status'], 2],
  ['an unknown option before a command', ['--frob', 'version'], 2],
  ['--json=false', ['version', '--json=false'], 0],
])('%s leads to the exit code %j', async (_, argv, code) => {
  expect(await latchkey(...argv)).toMatchObject({ code });
});

test.each([
  ['--listen', '1e5'],
  ['--listen=false', '--log-level=debug', '--json'],
  ['--socket', '-', '--upstream-url=http://[::1]:8787/?a=b', '--json=false'],
])('serve %s gives the options that yargs reads', async (...argv) => {
  const { command } = await import('../../src/cli/commands/serve.ts');
  // yargs reads a line that does not begin with its command.
  const [plain, byYargs] = await Promise.all([
    parseArguments(['serve', '--state-dir', '/x y', ...argv], ['serve'], command),
    parseArguments(['--state-dir', '/x y', 'serve', ...argv], ['serve'], command),
  ]);
  expect(byYargs).toEqual({ _: ['serve'], $0: 'latchkey', ...plain });
});

test('words after -- are arguments, also if they look like options or numbers', async () => {
  await using directory = temporaryDirectory();
  for (const key of ['-KEY-', '--json', '1e5', '--', '-1'] as const) {
    const { code, err } = await latchkey('explain', '--state-dir', directory.path, '--', key);
    expect([code, err]).toEqual([2, expect.stringContaining(`Unknown code: ${key}.`)]);
  }
});

test('a number as an argument stays the text that was typed', async () => {
  for (const code of ['1e5', '007', '0x10'])
    expect((await latchkey('explain', code)).err).toContain(`Unknown code: ${code}.`);
});

test('the sentences are English in every locale', async () => {
  vi.stubEnv('LC_ALL', 'de_DE.UTF-8');
  expect((await latchkey('outbox', 'list', '--help')).out).toContain('Options:');
  expect((await latchkey('outbox', 'show', 'a', 'b')).err).toContain('Unexpected argument: b');
  vi.unstubAllEnvs();
});

test('config check prints ok and the file that it read', async () => {
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

test('config check prints each error of the configuration on a line', async () => {
  await using directory = temporaryDirectory();
  const file = join(directory.path, 'config.yaml');
  await writeFile(file, 'limts: {}\nlog: { level: loud }\n');
  const { code, out, err } = await latchkey('config', 'check', '--config', file);
  expect({ code, out }).toEqual({ code: 78, out: '' });
  expect(err.trimEnd().split('\n')).toHaveLength(2);
  expect(err).toContain('did you mean limits?');
  const machine = await latchkey('config', 'check', '--config', file, '--json');
  expect(machine.code).toBe(78);
  expect(JSON.parse(machine.out)).toMatchObject({ ok: false, errors: [{}, {}] });
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

test('serve does not start if an option overrides a setting with an invalid value', async () => {
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

test('serve --listen false turns the TCP listener off', async () => {
  await using directory = temporaryDirectory();
  const off = ['--listen', 'false', '--socket', 'false'];
  const { code, err } = await latchkey('serve', '--state-dir', directory.path, ...off);
  expect(code).toBe(78);
  expect(err).toContain('has no listener');
});
