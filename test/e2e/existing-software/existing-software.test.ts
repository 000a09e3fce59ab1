import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import {
  apiKey,
  productKey,
  secret,
  startHarness,
  type AgentHarness,
} from '../../support/harness/agent-harness.ts';
import {
  audioPlugin,
  conclude,
  desktopApp,
  existingPrograms,
  type ExistingProgram,
  type ProgramCommand,
} from '../../support/reference/existing-programs.ts';
import { freePort } from '../../support/network/free-port.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

/*
 * Programs that were written for a store's API, each in its own way. Only their base URL is
 * changed, so that an agent answers them instead of the store. The tests check what the programs
 * conclude.
 */

const known = 'AAAAA-BBBBB-CCCCC-DDDDD';
const disabled = 'EEEEE-FFFFF-GGGGG-HHHHH';
const ofAnother = 'JJJJJ-KKKKK-LLLLL-MMMMM';
const unseen = 'NNNNN-PPPPP-QQQQQ-RRRRR';

async function setStore(dialect: string, unknown: string, more: object = {}): Promise<AgentHarness> {
  const tcp = `127.0.0.1:${await freePort()}`;
  return await startHarness({
    licenses: [
      { licenseKey: known, uses: 3 },
      { licenseKey: disabled, enabled: false },
      { licenseKey: ofAnother, productKey: 'another' },
      unseen,
    ],
    upstream: {
      products: [
        { productKey, secret },
        { productKey: 'another', secret: 'secret-of-another' },
      ],
    },
    configuration: { listen: { tcp, dialect, unknown }, ...more },
  });
}

const buildDirectory = temporaryDirectory();
afterAll(() => buildDirectory[Symbol.asyncDispose]());
const commands = new Map<string, Promise<ProgramCommand>>();

/** Builds each program once, for both dialects. */
function commandOf(program: ExistingProgram): Promise<ProgramCommand> {
  const directory = join(buildDirectory.path, program.file);
  mkdirSync(directory, { recursive: true });
  const command = commands.get(program.file) ?? program.build(directory);
  commands.set(program.file, command);
  return command;
}

for (const dialect of ['payhip', 'specification']) {
  // Only the store's own dialect has the first version of the API.
  const programs = existingPrograms.filter(({ api }) => api === 'v2' || dialect === 'payhip');
  test.concurrent.for(programs)(
    `behind an agent in the dialect ${dialect}, $file reaches the right conclusions`,
    // The first Go build compiles the whole standard library.
    { timeout: 300_000 },
    async (program, context) => {
      const missing = await program.missing();
      context.skip(missing !== null, missing ?? '');
      await using directory = temporaryDirectory();
      const activation = join(directory.path, 'activation');
      const command = await commandOf(program);
      await using harness = await setStore(dialect, 'reset');
      const agent = await harness.startAgent();
      const settings = { api: agent.process.tcp, secret, apiKey, productLink: productKey, activation };
      const concluded: string[] = [];
      const does = async (action: string, key: string): Promise<void> => {
        const conclusion = await conclude([...command, action, key], settings);
        concluded.push(
          `${action} ${key.slice(0, 5)}: ${conclusion}, ${existsSync(activation) ? '' : 'not '}activated`,
        );
      };
      await does('check', 'UNKNOWN');
      await does('check', known);
      await does('check', disabled);
      await does('check', ofAnother);
      for (const action of ['usage', 'decrease', 'disable']) await does(action, known);
      await does('check', known);
      await does('enable', known);
      await does('check', known);
      await agent.atRest();
      await harness.proxy.become({ kind: 'refuse' });
      await does('check', known);
      await does('usage', known);
      await does('check', unseen);
      rmSync(activation);
      await does('check', unseen);
      writeFileSync(activation, known);
      await agent.kill();
      await does('check', known);
      expect(concluded).toEqual([
        'check UNKNO: INVALID, not activated',
        'check AAAAA: VALID, activated',
        'check EEEEE: INVALID, not activated',
        'check JJJJJ: INVALID, not activated',
        'usage AAAAA: USES 4, not activated',
        'decrease AAAAA: USES 3, not activated',
        'disable AAAAA: DISABLED, not activated',
        'check AAAAA: INVALID, not activated',
        'enable AAAAA: ENABLED, not activated',
        'check AAAAA: VALID, activated',
        // The store is down: the agent answers for the keys that it knows, and says nothing about
        // others.
        'check AAAAA: VALID, activated',
        'usage AAAAA: USES 4, activated',
        'check NNNNN: KEEP, activated',
        'check NNNNN: TRY LATER, not activated',
        // The agent is down.
        'check AAAAA: KEEP, activated',
      ]);
      expect(harness.upstream.license(known)).toMatchObject({ uses: 3, enabled: true });
    },
  );
}

test('with `unknown: problem`, a program mistakes the error for an unknown key for a refusal', async () => {
  await using directory = temporaryDirectory();
  const activation = join(directory.path, 'activation');
  writeFileSync(activation, unseen);
  await using harness = await setStore('payhip', 'problem');
  const agent = await harness.startAgent();
  await harness.proxy.become({ kind: 'refuse' });
  const settings = { api: agent.process.tcp, secret, apiKey, productLink: productKey, activation };
  const command = await desktopApp.build(directory.path);
  expect(await conclude([...command, 'check', unseen], settings)).toBe('INVALID');
  expect(existsSync(activation)).toBe(false);
});

test('a program that treats 429 as a refusal finds a new license key valid while a guesser uses the same secret', async () => {
  await using directory = temporaryDirectory();
  const activation = join(directory.path, 'activation');
  await using harness = await setStore('payhip', 'reset', { limits: { misses: 1 } });
  const agent = await harness.startAgent();
  // Ten guesses are sent at once; the others wait. After one of these is answered, all others have arrived.
  let answered = 0;
  const guesses = Promise.allSettled(
    Array.from({ length: 40 }, (_, index) => agent.verify(`GUESS-${index}`).then(() => (answered += 1))),
  );
  const settings = { api: agent.process.tcp, secret, apiKey, productLink: productKey, activation };
  const command = await audioPlugin.build(directory.path);
  await expect.poll(() => answered).toBeGreaterThan(10);
  expect(await conclude([...command, 'check', unseen], settings)).toBe('VALID');
  expect(existsSync(activation)).toBe(true);
  await agent.kill();
  await guesses;
});
