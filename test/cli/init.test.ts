import { chownSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { formatPlan } from '../../src/cli/init/plan.ts';
import { formatFault } from '../../src/config/fault/fault.ts';
import { loadConfiguration } from '../../src/config/load.ts';
import { latchkey } from '../support/process/command-line.ts';
import { startPlainUpstream, type PlainUpstream } from '../support/stage/plain-upstream.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const secret = 'the-product-secret';

function startStore(): Promise<PlainUpstream> {
  return startPlainUpstream({ apiKey: 'the-api-key', products: [{ productKey: 'RGsF', secret }] });
}

test('without a terminal nothing is asked: the options that are missing are named', async () => {
  await using directory = temporaryDirectory();
  const config = join(directory.path, 'latchkey.yaml');
  const ask = async (...argv: string[]): Promise<unknown> =>
    await latchkey('init', '--config', config, ...argv);
  expect(await ask()).toMatchObject({
    code: 2,
    err: expect.stringContaining(
      'options are needed: --authority, or --upstream-url URL --product KEY --secret-file FILE',
    ) as string,
  });
  expect(await ask('--upstream-url', 'https://api.example.com')).toMatchObject({
    code: 2,
    err: expect.stringContaining('options are needed: --product KEY --secret-file FILE') as string,
  });
  expect(await ask('--authority', '--product', 'RGsF')).toMatchObject({
    code: 2,
    err: expect.stringContaining('--product is for an agent') as string,
  });
  expect(existsSync(config)).toBe(false);
});

describe('an agent by options', () => {
  async function init(directory: string, url: string, given: string, ...argv: string[]) {
    const secretFile = join(directory, 'rgsf.secret');
    writeFileSync(secretFile, given, { mode: 0o600 });
    const options = ['--upstream-url', url, '--product', 'RGsF', '--secret-file', secretFile];
    return await latchkey('init', '--config', join(directory, 'latchkey.yaml'), ...options, ...argv);
  }

  test('is written when the store takes its credentials, and says what comes next', async () => {
    await using directory = temporaryDirectory();
    await using store = await startStore();
    const config = join(directory.path, 'latchkey.yaml');
    const { code, out, err } = await init(directory.path, store.url, secret, '--json');
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(JSON.parse(out)).toMatchObject({
      file: config,
      role: 'agent',
      state_dir: join(directory.path, 'latchkey-state'),
      next: [`latchkey --config ${config} serve`, `latchkey --config ${config} status`],
    });
    const text = readFileSync(config, 'utf8');
    expect(text).toContain('secret_file: ./rgsf.secret');
    expect(text + out).not.toContain(secret);
    expect((await latchkey('config', 'check', '--connect', '--config', config)).code).toBe(0);
  });

  test('is not written when the store refuses the secret, unless that is said', async () => {
    await using directory = temporaryDirectory();
    await using store = await startStore();
    const config = join(directory.path, 'latchkey.yaml');
    const refused = await init(directory.path, store.url, 'another-secret');
    expect(refused).toMatchObject({ code: 1, out: '' });
    expect(refused.err).toContain('fail  the secret of product RGsF: ');
    expect(refused.err).toContain('latchkey: some checks failed: nothing was written');
    expect(existsSync(config)).toBe(false);
    expect(await init(directory.path, store.url, 'another-secret', '--unchecked')).toMatchObject({ code: 0 });
    expect(existsSync(config)).toBe(true);
  });

  test('is not written when the store is away, or its address is none', async () => {
    await using directory = temporaryDirectory();
    const away = await init(directory.path, 'http://127.0.0.1:1', secret);
    expect(away.err).toContain('fail  http://127.0.0.1:1 cannot be reached');
    const none = await init(directory.path, 'api.example.com', secret, '--unchecked');
    expect(none).toMatchObject({ code: 78, out: '' });
    expect(none.err).toContain('latchkey: upstream.base_url: must be an http or https URL');
    expect(existsSync(join(directory.path, 'latchkey.yaml'))).toBe(false);
  });
});

test.skipIf(process.getuid?.() !== 0)(
  'a configuration that the user of a service reads by its group is still read by it when it is replaced',
  async () => {
    await using directory = temporaryDirectory();
    const config = join(directory.path, 'config.yaml');
    writeFileSync(config, '', { mode: 0o640 });
    chownSync(config, 0, 54_321);
    const { out } = await latchkey('init', '--authority', '--force', '--config', config);
    expect(out).toContain('(mode 0640)');
    expect(statSync(config)).toMatchObject({ uid: 0, gid: 54_321 });
  },
);

describe('what is written', () => {
  const store = {
    baseUrl: 'https://api.example.com/shop',
    dialect: 'payhip',
    apiKey: { text: 'a # key: "quoted"' },
    products: [
      { key: '1e5', secret: { text: '0012' } },
      { key: 'true', secret: { text: "*it's*" } },
    ],
  } as const;
  const plan = { stateDir: './a b', tcp: '127.0.0.1:8787', socket: null, store };
  const load = (text: string) => loadConfiguration({ file: '/srv/latchkey.yaml', text, environment: {} });

  test('is read as it was meant, whatever characters there are', () => {
    const loaded = load(formatPlan(plan));
    expect(loaded).toMatchObject({
      ok: true,
      configuration: {
        stateDir: '/srv/a b',
        upstream: { baseUrl: store.baseUrl, dialect: 'payhip' },
        products: [{ key: '1e5' }, { key: 'true' }],
      },
    });
    const { upstream, products } = loaded.ok ? loaded.configuration : { upstream: null, products: [] };
    expect(
      [upstream?.apiKey, ...products.map((product) => product.secret)].map((it) => it?.reveal()),
    ).toEqual(['a # key: "quoted"', '0012', "*it's*"]);
  });

  test('has the defaults in its remarks: taking their # away changes nothing', () => {
    for (const each of [plan, { ...plan, store: { ...store, apiKey: null } }, { ...plan, store: null }]) {
      const text = formatPlan(each);
      const open = text.replaceAll(/^( *)#(?! )/gm, '$1');
      expect(open).not.toBe(text);
      const [closed, opened] = [load(text), load(open)];
      if (!opened.ok) throw new Error(opened.faults.map(formatFault).join('\n'));
      expect(opened.configuration).toEqual(closed.ok && closed.configuration);
    }
  });
});
