import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { masked, maskedLog } from '../../src/cli/masking.ts';
import { openCliShop } from '../support/app/cli-shop.ts';
import { isWindows } from '../support/platform.ts';
import { latchkey } from '../support/process/command-line.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const agent = {
  listen: { tcp: '127.0.0.1:1', socket: false },
  upstream: { base_url: 'http://127.0.0.1:1/private', timeout: '1s', api_key: 'canary-api-key-of-the-store' },
  products: [{ key: 'EDITOR', secret: 'canary-secret-of-the-product' }],
};

function configurationIn(directory: string, tree: object): string {
  const file = join(directory, 'config.yaml');
  writeFileSync(file, JSON.stringify({ state_dir: join(directory, 'state'), ...tree }), { mode: 0o600 });
  return file;
}

const titles = [
  '1. Version and platform',
  '2. Configuration, with secrets masked',
  '3. Status of the daemon',
  '4. What latchkey doctor finds',
  '5. How many records and changes are stored',
  '6. Log: not added',
];

test('support writes one file that lists its parts at its top, with the status and the counts of a daemon', async () => {
  await using shop = await openCliShop();
  await using directory = temporaryDirectory();
  await shop.run('product', 'add', 'Editor', '--key', 'EDITOR');
  await shop.run('license', 'issue', '--product', 'EDITOR', '--email', 'canary@example.com');
  const file = join(directory.path, 'support.txt');
  const { code, out } = await shop.run('support', '--output', file);
  expect(code).toBe(0);
  expect(out).toContain(`${file} has:\n  Version and platform\n`);
  expect(out).toContain('Read it before you send it.');
  const text = readFileSync(file, 'utf8');
  expect(text.split('\n== ')[0]).toContain(titles.map((title) => `  ${title}`).join('\n'));
  for (const title of titles) expect(text).toContain(`\n== ${title} ==\n`);
  expect(text).toContain('"role": "authority"');
  expect(text).toContain('node: ');
  expect(text).not.toContain('canary');
  const mode = statSync(file).mode & 0o777;
  expect(isWindows || mode === 0o600).toBe(true);
});

test('support says what can be had while no daemon runs', async () => {
  await using directory = temporaryDirectory();
  const config = configurationIn(directory.path, agent);
  const file = join(directory.path, 'support.txt');
  expect(await latchkey('support', '--output', file, '--config', config)).toMatchObject({ code: 0, err: '' });
  const text = readFileSync(file, 'utf8');
  expect(text).toContain('No status: the daemon was not asked, or did not answer.');
  expect(text).toContain('no daemon runs here');
  expect(text).toContain('upstream.api_key: ***');
  expect(text).toContain('upstream.base_url: http://127.0.0.1:1/…');
  expect(text).toContain('latchkey support --log FILE');
  expect(text).not.toContain('canary');
});

test('support also writes a file if the configuration is not valid', async () => {
  await using directory = temporaryDirectory();
  const config = configurationIn(directory.path, { ...agent, log: { level: 'canary' } });
  const file = join(directory.path, 'support.txt');
  expect((await latchkey('support', '--output', file, '--config', config)).code).toBe(0);
  const text = readFileSync(file, 'utf8');
  expect(text).toContain(
    'The configuration is not valid, so that its secrets are not known:\nlatchkey: configuration: log.level',
  );
  expect(text).not.toContain('canary');
});

test('support overwrites no file, and leaves none behind when its log cannot be read', async () => {
  await using directory = temporaryDirectory();
  const config = configurationIn(directory.path, agent);
  const file = join(directory.path, 'support.txt');
  writeFileSync(file, 'mine');
  const refused = await latchkey('support', '--output', file, '--config', config);
  expect(refused.code).toBe(1);
  expect(refused.err).toContain(`latchkey: cannot create ${file}: file already exists`);
  expect(readFileSync(file, 'utf8')).toBe('mine');
  const other = join(directory.path, 'other.txt');
  const nothing = join(directory.path, 'nothing');
  const { err } = await latchkey('support', '--output', other, '--log', nothing, '--config', config);
  expect(err).toContain(`latchkey: cannot read ${nothing}: `);
  expect(existsSync(other)).toBe(false);
  expect((await latchkey('support', '--output', '-', '--config', config)).code).toBe(2);
});

test('support adds the last lines of a log, with the fields that say nothing about people', async () => {
  await using directory = temporaryDirectory();
  const config = configurationIn(directory.path, agent);
  const log = join(directory.path, 'log');
  const lines = Array.from({ length: 300 }, (_, index) =>
    JSON.stringify({ level: 'info', part: 'http', msg: `line ${index}`, label: 'canary', route: '/api/v2' }),
  );
  writeFileSync(log, [...lines, 'Bearer canary-secret-of-the-product'].join('\n'));
  const file = join(directory.path, 'support.txt');
  await latchkey('support', '--output', file, '--log', log, '--config', config);
  const text = readFileSync(file, 'utf8');
  expect(text).toContain('== 6. Log: the last 200 lines ==');
  expect(text).toContain('{"level":"info","part":"http","msg":"line 299","route":"/api/v2"}\nBearer ***\n');
  expect(text).toContain('"line 101"');
  expect(text).not.toContain('"line 100"');
  expect(text).not.toContain('canary');
});

test.each([
  ['a secret of Latchkey', 'with lk_prod_0123456789abcdef.', 'with ***.'],
  ['a secret of a webhook', 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', '***'],
  ['an e-mail address', 'for Zoë.Müller@example.com, please', 'for (e-mail address), please'],
  ['a key of Latchkey', 'use H7QKR-WX2MZ-9PLTD-C4VBN now', 'use …4VBN now'],
  ['a key of another store', 'ABCD1234-EFGH5678-IJKL9012', '…9012'],
  ['a key that is a UUID', '38b1460a-5104-4067-a91d-77b872934d51', '…4d51'],
  ['a key without dashes', 'use H7QKRWX2MZ9PLTDC4VBN now', 'use …4VBN now'],
  ['a key in a path', '/licenses/ABCD1234-EFGH5678-IJKL9012/uses', '/licenses/…9012/uses'],
  ['a key in typographic quotes', '“ABCD1234-EFGH5678-IJKL9012”', '“…9012”'],
  ['a key with typographic dashes', 'ABCD1234–EFGH5678–IJKL9012', '…9012'],
  ['a key of any form with its name', 'GET /x?license_key=short%20key&a=1', 'GET /x?license_key=***&a=1'],
  ['a secret with its name', 'host=db password=s3cret user=x', 'host=db password=*** user=x'],
  ['a secret in JSON', '{"api_key":"s3cret","part":"http"}', '{"api_key":"***","part":"http"}'],
  ['a secret in a path', '/lk_prod_0123456789abcdef/x', '/***'],
  ['an encoded e-mail address', 'email=zoe%40example.com', 'email=(e-mail address)'],
  ['an e-mail address in a path', '/buyers/zoe@example.com/x', '/buyers/(e-mail address)/x'],
  ['an address in capitals', 'HTTPS://hooks.example.com/T0/B0', 'HTTPS://hooks.example.com/…'],
  ['an address with brackets in its path', 'https://example.com/a(b)secret', 'https://example.com/…'],
  ['a password with a comma', 'https://shop:s3,cret@example.com/', 'https://***@example.com/…'],
  ['a password in a query', 'postgres:///shop?password=s3cret', 'postgres:///shop?…'],
  [
    'the name of a setting',
    'upstream.headers.product_secret: x-secret',
    'upstream.headers.product_secret: x-secret',
  ],
  [
    'a secret in the place of a key',
    'upstream.4fK9aQ2mZx81LrTt0vWqYb7c: unknown key',
    'upstream.…Yb7c: unknown key',
  ],
  ['a long token', 'x-debug 4fK9aQ2mZx81LrTt0vWqYb7c', 'x-debug …Yb7c'],
  [
    'a password in an address',
    'postgres://shop:s3cret@db.internal/latchkey',
    'postgres://***@db.internal/latchkey',
  ],
  [
    'the path of an address',
    'POST https://hooks.example.com/T0/B0/xyz failed',
    'POST https://hooks.example.com/… failed',
  ],
  ['a credential', 'authorization: Token dXNlcjpwYXNz', 'authorization: ***'],
  ['an id of an operation', '01890a5d-ac96-774b-bcce-b302099a8057', '01890a5d-ac96-774b-bcce-b302099a8057'],
  ['an id with many digits', '01890a5d-1111-7222-8333-44445555666a', '01890a5d-1111-7222-8333-44445555666a'],
  ['a date', '2026-02-22T10:11:12.345Z', '2026-02-22T10:11:12.345Z'],
  [
    'a place in the program',
    'at run (/opt/latchkey/dist/cli/main.js:12:3)',
    'at run (/opt/latchkey/dist/cli/main.js:12:3)',
  ],
])('the text for support has %s as it should', (_, given, shown) => {
  expect(masked(given)).toBe(shown);
});

test('the text for support has no secret in another form, and no password of an address', () => {
  const secrets = ['c$nary"1', 'http://shop:c%40nary2@proxy.example.com/'];
  const given = String.raw`c%24nary%221 c$nary\"1 c%40nary2 c@nary2`;
  expect(masked(given, secrets)).toBe('*** *** *** ***');
});

test('a log for people has no field about people, with colors, in several lines or behind other text', () => {
  const text = [
    '\u001B[32mINFO\u001B[39m: changed',
    '    \u001B[35mlabel\u001B[39m: "Zoë"',
    '    faults: [',
    '      "Zoë"',
    '    ]',
    '    err: {',
    '      "message": "full"',
    '    }',
    'Feb  2 10:11:12 host latchkey[7]:     label: "Zoë"',
    '  "label": "Zoë",',
  ].join('\n');
  const kept = ['INFO: changed', '    err: {', '      "message": "full"', '    }'];
  expect(maskedLog(text, 9, [])).toEqual(kept);
  const utf16 = Buffer.from(`{"msg":"x","label":"Zoe"}`, 'utf16le').toString('utf8');
  expect(maskedLog(utf16, 9, [])).toEqual(['{"msg":"x"}']);
});

test('support reads the end of a log that is larger than memory should be, and cuts long lines', async () => {
  await using directory = temporaryDirectory();
  const config = configurationIn(directory.path, agent);
  const log = join(directory.path, 'log');
  const line = `${JSON.stringify({ level: 'info', msg: 'x'.repeat(9_000) })}\n`;
  writeFileSync(log, `${line.repeat(2_000)}the last line`);
  const file = join(directory.path, 'support.txt');
  const { code, err } = await latchkey('support', '--output', file, '--log', log, '--config', config);
  expect([code, err]).toEqual([0, '']);
  const lines = readFileSync(file, 'utf8').trim().split('\n');
  expect(lines.at(-1)).toBe('the last line');
  expect(lines.at(-2)).toMatch(/^\{"level":"info","msg":"x+…$/);
  expect(Math.max(...lines.map(({ length }) => length))).toBe(2_001);
});

test('support withholds the name of a device', async () => {
  await using directory = temporaryDirectory();
  const config = configurationIn(directory.path, { ...agent, leases: { device_name: 'Canary of Zoë' } });
  const file = join(directory.path, 'support.txt');
  await latchkey('support', '--output', file, '--config', config);
  expect(readFileSync(file, 'utf8')).toContain('leases.device_name: ***');
});

test('lines for people and lines of a service manager are read, too', () => {
  const text = [
    'Feb 22 10:11:12 host latchkey[7]: {"level":"info","msg":"ready","label":"Zoë"}',
    '[10:11:12.345] INFO: changed',
    '    label: "Zoë"',
    '    status: 200',
    '{"level":"info","msg":"cut o',
  ].join('\r\n');
  expect(maskedLog(text, 9, [])).toEqual([
    '{"level":"info","msg":"ready"}',
    '[10:11:12.345] INFO: changed',
    '    status: 200',
    '(a line that is not complete)',
  ]);
});
