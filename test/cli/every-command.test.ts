import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { commands } from '../../src/cli/commands.ts';
import { readPages } from '../../src/cli/reference.ts';
import { startDaemon } from '../../src/daemon/start.ts';
import { embeddedConfiguration } from '../../src/config/load.ts';
import { engineOfProject } from '../support/app/engine.ts';
import { openCliShop } from '../support/app/cli-shop.ts';
import { completeLine, everyLine } from '../support/app/every-command.ts';
import { latchkey, type Outcome } from '../support/process/command-line.ts';
import { silent } from '../support/silent-log.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const lines = await everyLine();

/** These commands take no configuration, and would not end. */
const runsOnItsOwn = new Set(['demo', 'sandbox']);

test.each(lines)('latchkey %s --help prints a usage, the options and an example', async (line) => {
  const { code, out, err } = await latchkey(...line.split(' '), '--help');
  expect({ code, err }).toEqual({ code: 0, err: '' });
  expect(out).toMatch(new RegExp(`^latchkey ${line}( |\n)`));
  expect(out).toContain('\n\nGeneral options:\n      --config ');
  expect(out).toMatch(new RegExp(`\nExamples:\n(.*\n)*.*\\blatchkey ${line}\\b`));
  for (const row of out.split('\n')) expect(row.length).toBeLessThanOrEqual(100);
});

test('every positional, option and example has a description', async () => {
  for (const page of await readPages(commands)) {
    const { positionals, options, examples } = page;
    const mute = [...positionals, ...options, ...examples].filter(({ meaning }) => meaning === '');
    expect([page.usage, mute]).toEqual([page.usage, []]);
  }
});

test('the program alone has --version, and every command has the general options', async () => {
  const [program, ...pages] = await readPages(commands);
  expect(program?.options.map(({ term }) => term)).toEqual(['-v, --version']);
  for (const { general } of pages) expect(general).toEqual(program?.general);
});

/** What is not run here with success, and where it is. */
const elsewhere: Readonly<Record<string, string>> = {
  serve: 'what it prints is its log: test/e2e',
  init: 'writes into the working directory: test/features/install/init.test.ts',
  sandbox: 'test/e2e/sandbox.test.ts',
  console: 'test/e2e/console-sign-in.test.ts',
  stop: 'test/e2e/stop-and-reload.test.ts',
  reload: 'test/e2e/stop-and-reload.test.ts',
  'state show': 'needs a state directory of a real daemon: test/cli/state.test.ts',
  'store move': 'needs PostgreSQL: test/features/postgres/daemon/database-move.test.ts',
  restore: 'test/e2e/restore.test.ts',
  activate: 'needs a holder: test/features/leases/daemon/holder.test.ts',
  deactivate: 'needs a holder: test/features/leases/daemon/holder.test.ts',
  'lease request': 'needs a holder: test/features/leases/daemon/holder.test.ts',
  'lease install': 'needs a holder: test/features/leases/daemon/holder.test.ts',
  'lease list': 'needs a holder: test/features/leases/daemon/holder.test.ts',
  'lease sign': 'needs an issuer: test/features/leases/cli/issuer.test.ts',
  'activation list': 'needs an issuer: test/features/leases/cli/issuer.test.ts',
  'activation show': 'needs an issuer: test/features/leases/cli/issuer.test.ts',
  'activation end': 'needs an issuer: test/features/leases/cli/issuer.test.ts',
  'activation block': 'needs an issuer: test/features/leases/cli/issuer.test.ts',
  'webhook test': 'needs a receiver: test/features/webhooks/cli/webhook.test.ts',
  'webhook replay': 'needs a receiver: test/features/webhooks/cli/webhook.test.ts',
  'agent forget': 'needs an agent: test/features/following/cli/agent.test.ts',
  'outbox retry': 'needs a change that is dead: test/e2e/outbox-decisions.test.ts',
  'outbox confirm': 'needs a change uncertain: test/e2e/outbox-decisions.test.ts',
  'outbox decide': 'needs changes that are dead: test/e2e/outbox-decisions.test.ts',
};

/** What each command is given, in this order; `$NAME` is what a former answer had there. */
const successes: readonly string[] = [
  'demo',
  'account add Shop',
  'account list',
  'account rotate $account_id',
  'product add Editor',
  'product list',
  'product show $product_key',
  'product update $product_key --name Other',
  'product archive $product_key',
  'product unarchive $product_key',
  'product rotate $product_key',
  'collection add Bundle $product_key',
  'collection list',
  'collection show $collection_id',
  'collection update $collection_id --name Set',
  'license issue --product $product_key --email buyer@example.com',
  'license list',
  'verify $license_key',
  'use $license_key',
  'unuse $license_key',
  'disable $license_key',
  'enable $license_key',
  'license show $license_key',
  'license history $license_key',
  'license update $license_key --expires 2998-12-31',
  'license renew $license_key --for 1y',
  'license set-uses $license_key 3',
  'license transfer $license_key --email new@example.com --free-seats',
  'license rekey $license_key',
  'license export $folder/licenses.csv',
  'license import $folder/licenses.csv',
  'purchase list',
  'purchase show $purchase_id',
  'purchase export $folder/purchases.csv',
  'purchase import $folder/purchases.csv',
  'purchase refund $purchase_id',
  'customer forget new@example.com --yes',
  'coupon create --code SPRING --type multi --percent-off 20',
  'coupon list',
  'coupon show $id',
  'coupon update $id --usage-limit 5',
  'coupon quote SPRING $product_key=10.00',
  'coupon redeem SPRING order-1 $product_key=10.00',
  'coupon void order-1',
  'coupon end $id',
  'coupon create --code AUTUMN --type multi --percent-off 20',
  'coupon delete $id',
  'coupon export $folder/coupons.csv',
  'coupon import $folder/coupons.csv',
  'token list',
  'token issue --scope ops',
  'token rotate $token_id',
  'token revoke $token_id',
  // No event follows, so that nothing is sent to this address.
  'webhook add https://1.1.1.1/latchkey --events license.issued',
  'webhook list',
  'webhook show $webhook_id',
  'webhook deliveries $webhook_id',
  'webhook rotate $webhook_id',
  'webhook resume $webhook_id',
  'webhook remove $webhook_id',
  'agent list',
  'audit list',
  'audit show 1',
  'status',
  'backup $folder/backup.db',
  'doctor',
  'support --output $folder/support.txt',
  'explain storage_full',
  'service print',
  'service install --root $folder',
  'service uninstall --root $folder',
  'certificate make --host localhost --out $folder/tls',
  'lease setup --issuer https://licenses.example.com --roots $folder/roots',
  'lease signing-key list',
  'lease signing-key rotate --root $folder/roots/root-1.jwk',
  'init --authority --config $folder/latchkey.yaml',
  'config check',
  'config show',
  'completion bash',
  'completion zsh',
  'completion fish',
  'completion powershell',
  'completion next -- outbox',
  'man',
  'help outbox retry',
  'version',
];

/** On an agent whose store is away. */
const successesOfAgent: readonly string[] = [
  'preload $folder/keys.txt',
  'sync now',
  // What is in flight takes no decision.
  'sync pause',
  'coupon create --code WINTER --type multi --percent-off 20',
  'outbox list',
  'outbox show $id',
  'outbox drop $id',
  'sync resume',
];

/** Reads what a command printed: nothing but JSON, where there is anything. */
function readJson({ code, out, err }: Outcome): { code: number; out: unknown; err: unknown } {
  const parse = (text: string): unknown => (text === '' ? undefined : JSON.parse(text));
  return { code, out: parse(out), err: parse(err) };
}

/** Runs commands one after the other, each with `--json`; gives those that failed or told nothing. */
async function runAll(given: readonly string[], stateDir: string, folder: string): Promise<unknown[]> {
  const known = new Map([['folder', folder]]);
  const failed: unknown[] = [];
  for (const line of given) {
    const words = line
      .split(' ')
      .map((word) => word.replace(/\$(\w+)/, (_, name: string) => known.get(name) ?? ''));
    const options = runsOnItsOwn.has(line) ? [] : ['--state-dir', stateDir];
    const outcome = readJson(await latchkey('--json', ...options, ...words));
    if (outcome.code !== 0 || outcome.out === undefined) failed.push([line, outcome]);
    remember(outcome.out, known);
  }
  return failed;
}

/** Keeps every value of an answer by its name. */
function remember(value: unknown, known: Map<string, string>): void {
  if (typeof value !== 'object' || value === null) return;
  for (const [name, member] of Object.entries(value)) {
    if (typeof member === 'string' || typeof member === 'number') known.set(name, String(member));
    else remember(member, known);
  }
}

test('every command is run with --json, here or in another test file', () => {
  const tried = [...successes, ...successesOfAgent];
  const missing = lines.filter(
    (line) => elsewhere[line] === undefined && !tried.some((each) => `${each} `.startsWith(`${line} `)),
  );
  expect(missing).toEqual([]);
  expect(Object.keys(elsewhere).filter((line) => !lines.includes(line))).toEqual([]);
});

test('a command that succeeds prints JSON and nothing else', async () => {
  await using folder = temporaryDirectory();
  await using shop = await openCliShop();
  const isOffered = (line: string): boolean => {
    // PostgreSQL has its own backup tools.
    if (line.startsWith('backup ')) return engineOfProject === null;
    // Services are installed for systemd alone.
    return process.platform !== 'win32' || !/^service (un)?install /.test(line);
  };
  const given = successes.filter(isOffered);
  expect(await runAll(given, shop.directory, folder.path)).toEqual([]);
});

test('a command for an agent prints JSON and nothing else', async () => {
  await using folder = temporaryDirectory();
  await writeFile(join(folder.path, 'keys.txt'), 'WTKP4-66NL5-HMKQW-GFSCZ\n');
  const stateDir = join(folder.path, 'state');
  const configuration = embeddedConfiguration({
    state_dir: stateDir,
    listen: { tcp: false },
    upstream: { base_url: 'http://127.0.0.1:9', api_key: 'an-api-key-of-the-store' },
    products: [{ key: 'RGsF', secret: 'the-secret-of-the-product' }],
  });
  const agent = await startDaemon(configuration, { log: silent });
  const failed = await runAll(successesOfAgent, stateDir, folder.path);
  await agent.stop();
  expect(failed).toEqual([]);
});

test.each(lines)('latchkey %s --json prints the error of a wrong command line as JSON', async (line) => {
  const outcome = readJson(await latchkey(...line.split(' '), '--nonsense', '--json'));
  expect(outcome).toEqual({
    code: 2,
    out: undefined,
    err: {
      error: { code: 'usage', detail: expect.stringContaining('--nonsense') as string, exit_code: 2 },
    },
  });
});

test.each(lines.filter((line) => !runsOnItsOwn.has(line)))(
  'latchkey %s --json prints its failure as JSON, without a daemon and with an invalid configuration',
  async (line) => {
    await using folder = temporaryDirectory();
    const file = join(folder.path, 'faulty.yaml');
    await writeFile(file, 'limts: {}\n');
    const argv = await completeLine(line, folder.path);
    const outcomes = [
      ...(line === 'serve' ? [] : [await latchkey('--json', '--state-dir', folder.path, ...argv)]),
      await latchkey('--json', '--config', file, ...argv),
    ];
    const wrong = outcomes.map(readJson).filter(({ code, out, err }) => {
      if (code === 0 || out !== undefined) return err !== undefined;
      return (err as { error?: { exit_code: number } } | undefined)?.error?.exit_code !== code;
    });
    expect(wrong).toEqual([]);
  },
);
