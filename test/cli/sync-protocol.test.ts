import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { embeddedConfiguration } from '../../src/daemon/sandbox/server.ts';
import { startDaemon } from '../../src/daemon/start.ts';
import type { StatusObject } from '../../src/wire/status.ts';
import { latchkey } from '../support/process/command-line.ts';
import { longPatienceMs } from '../support/patience.ts';
import { blocksOf, readExample, wordsOf } from '../support/reference/guides.ts';
import { silent } from '../support/silent-log.ts';
import { temporaryDirectory } from '../support/temporary.ts';

type Run = (...argv: string[]) => Promise<string>;

/** Runs commands at a daemon; a command that fails throws. */
function commandsAt(...place: readonly string[]): Run {
  return async (...argv) => {
    const { code, out, err } = await latchkey(...argv, ...place);
    if (code !== 0) throw new Error(`${argv.join(' ')}: ${err}${out}`);
    return out;
  };
}

/** An authority with one license key, and an agent of it that pushes. */
async function startBoth(): Promise<{ authority: Run; agent: Run; licenseKey: string }> {
  const folder = temporaryDirectory();
  onTestFinished(() => folder[Symbol.asyncDispose]());
  const [above, below] = [join(folder.path, 'authority'), join(folder.path, 'agent')];
  const store = await startDaemon(
    embeddedConfiguration({ state_dir: above, listen: { tcp: '127.0.0.1:0', socket: false } }),
    { log: silent },
  );
  onTestFinished(() => store.stop());
  const authority = commandsAt('--state-dir', above);
  const product = JSON.parse(await authority('product', 'add', 'Press', '--json')) as {
    product_key: string;
    secret: string;
  };
  const sale = ['--product', product.product_key, '--email', 'buyer@example.com', '--json'];
  const sold = JSON.parse(await authority('license', 'issue', ...sale)) as {
    license: { license_key: string };
  };
  const configuration = {
    state_dir: below,
    listen: { tcp: '127.0.0.1:0', socket: false },
    upstream: { base_url: store.addresses.tcp },
    products: [{ key: product.product_key, secret: product.secret }],
  };
  const file = join(folder.path, 'agent.yaml');
  await writeFile(file, JSON.stringify(configuration), { mode: 0o600 });
  const running = await startDaemon(embeddedConfiguration(configuration), { log: silent });
  onTestFinished(() => running.stop());
  return { authority, agent: commandsAt('--config', file), licenseKey: sold.license.license_key };
}

async function statusOf(agent: Run): Promise<StatusObject> {
  return JSON.parse(await agent('status', '--json')) as StatusObject;
}

const patiently = { timeout: longPatienceMs };

test('a person ends and begins the pushes to an authority by a command, which is on record', async () => {
  const { authority, agent, licenseKey } = await startBoth();
  const protocol = async () => (await statusOf(agent)).upstream?.protocol;
  const usesAbove = async (): Promise<unknown> =>
    (JSON.parse(await authority('verify', licenseKey, '--json')) as { uses: number }).uses;
  await agent('verify', licenseKey);
  await expect.poll(protocol, patiently).toBe('latchkey');
  await agent('use', licenseKey);
  await expect.poll(usesAbove, patiently).toBe(1);
  const followed = async () => (await statusOf(agent)).upstream?.pushes.map((each) => each.followed);
  await expect.poll(followed, patiently).toEqual([1]);
  const shown = await agent('status');
  expect(shown).toMatch(/upstream +up since .*, \/sync\/v1, last success/);
  expect(shown).toMatch(/pushes of \S+ +push 1, 1 followed key, confirmed /);
  expect(await authority('status')).toMatch(/agents +1 known, \d+ connected: see .*agent list/);
  expect(await authority('agent', 'list')).toMatch(/\n1 +[0-9a-f]{12} +default +\S+ +1 +1 +/);

  const plain = await agent('sync', 'protocol', 'plain');
  expect(plain).toMatch(/upstream +up since .*, plain protocol, /);
  expect(plain).toMatch(/note +\/sync\/v1 is not used until: latchkey .*sync protocol automatic/);
  await agent('use', licenseKey);
  await expect.poll(usesAbove, patiently).toBe(2);
  expect((await statusOf(agent)).upstream).toMatchObject({
    protocol: 'plain',
    protocol_choice: 'plain',
    pushes: [],
  });
  expect(await agent('status')).toMatch(/plain by choice +\/sync\/v1 is not used until: /);

  expect(await agent('sync', 'protocol', 'automatic')).not.toContain('note');
  await expect.poll(protocol, patiently).toBe('latchkey');
  await agent('use', licenseKey);
  await expect.poll(usesAbove, patiently).toBe(3);
  const record = await agent('audit', 'list', '--act', 'sync.protocol');
  expect(record).toMatch(/automatic[^]*plain/);
  const wrong = await latchkey('sync', 'protocol', 'other');
  expect(wrong).toMatchObject({ code: 2, err: expect.stringContaining('automatic') as string });
});

test('each command of the guide about agents and their authority does what the guide says', async () => {
  const { authority, agent, licenseKey } = await startBoth();
  await agent('verify', licenseKey);
  await expect.poll(async () => (await statusOf(agent)).upstream?.protocol, patiently).toBe('latchkey');
  await expect.poll(() => authority('agent', 'list'), patiently).toContain('\n1 ');
  const ran: string[] = [];
  for (const line of blocksOf(readExample('guides/agents-and-authority.md'), 'sh').flatMap(linesOf)) {
    const [, ...words] = wordsOf(line);
    // test/e2e/sandbox.test.ts and test/e2e/readme.test.ts run these.
    if (words[0] === 'sandbox' || words.includes('--config')) continue;
    const isOfAuthority = words[0] === 'agent';
    ran.push(await (isOfAuthority ? authority : agent)(...words));
  }
  expect(ran.map((text) => text.split('\n', 1)[0])).toEqual([
    expect.stringMatching(/^number +agent +account/i),
    'forgotten',
    expect.stringContaining('latchkey'),
    expect.stringContaining('ok'),
    expect.stringContaining('plain protocol'),
    expect.stringContaining('upstream'),
  ]);
});

function linesOf(block: string): string[] {
  return block.split('\n').filter((line) => line !== '');
}
