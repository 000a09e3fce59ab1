import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { commands } from '../../src/cli/commands.ts';
import { latchkey } from '../support/command-line.ts';
import { temporaryDirectory } from '../support/temporary.ts';

test('without arguments the help is printed, and the exit code is that of misuse', async () => {
  const { code, out } = await latchkey();
  expect(code).toBe(2);
  for (const { summary } of commands) expect(out).toContain(summary);
});

test.each(commands.map(({ usage }) => usage.split(' ')[0] ?? ''))('%s has a help', async (name) => {
  const { code, out, err } = await latchkey(name, '--help');
  expect({ code, err }).toEqual({ code: 0, err: '' });
  expect(out).toContain('--state-dir');
});

test.each([
  [['verfy', 'K'], 'Did you mean verify?'],
  [['coupon', 'lst'], 'Did you mean list?'],
  [['frobnicate'], 'Unknown command: frobnicate'],
  [['verify'], 'need at least 1'],
  [['verify', 'K', 'L'], 'Unknown command: L'],
  [['verify', '--', 'K', '-L'], 'Unknown command: -L'],
  [['verify', 'K', '--frob'], 'Unknown argument: frob'],
  [['verify', 'K', '--config'], 'Not enough arguments following: config'],
  [['verify', 'K', '--config', 'a', '--config', 'b'], '--config is given twice'],
  [['coupon'], 'coupon needs a command: create, list, get'],
  [['coupon', 'create', '--code', 'X'], 'Missing required argument: type'],
  [['outbox', 'list', '--state', 'lost'], 'Choices: "pending"'],
  [['sandbox', '--latency', 'long'], '--latency must be a duration'],
  [['sandbox', '--error-rate', '2'], '--error-rate must be a number from 0 to 1'],
  [['sandbox', '--port', '-1'], '--port must be a number from 0 to 65535'],
  [['--json'], 'A command is missing'],
])('%j is misuse: a line that says so, and a hint', async (argv, message) => {
  const { code, out, err } = await latchkey(...argv);
  expect({ code, out }).toEqual({ code: 2, out: '' });
  expect(err).toContain(message);
  expect(err).toMatch(/^latchkey: [^\n]+\nSee: latchkey --help\n$/);
  expect(err).not.toContain('\0');
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
  expect(err).toContain('nobody could call');
});
