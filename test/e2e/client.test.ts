import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { connect, LatchkeyError, type LatchkeyClient } from '../../src/client/index.ts';
import { eventually, secret, startAgentHarness } from '../support/harness/agent-harness.ts';
import { makeLeaseVectors } from '../features/leases/support/vectors.ts';
import { compile, installClient } from '../support/process/installed-client.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const run = promisify(execFile);
const root = fileURLToPath(new URL('../..', import.meta.url));

it('a thousand uses count once each although the agent is killed and restarted at random times', async () => {
  await using harness = await startAgentHarness({ licenses: ['KEY'] });
  const client = connect({ stateDir: join(harness.directory, 'state'), productSecret: secret });
  const waiting = Array.from({ length: 1_000 }, (_, number) => `use ${number}`);
  const work = async (): Promise<void> => {
    for (let key = waiting.pop(); key !== undefined; key = waiting.pop()) await useUntilAnswered(client, key);
  };
  const working = Promise.all(Array.from({ length: 8 }, work));
  // Kill by progress, not by time: a fast machine would finish before the last kill.
  for (const left of [900, 750, 600, 450, 300]) {
    await eventually(() => waiting.length <= left - Math.floor(Math.random() * 100));
    expect(waiting).not.toEqual([]);
    // This kills the running agent first.
    await harness.startAgent();
  }
  await working;
  await harness.agent.atRest();
  expect(harness.upstream.license('KEY')?.uses).toBe(1_000);
  expect((await client.verify('KEY')).license?.uses).toBe(1_000);
});

/** Keeps the idempotency key of a change until it gets a response, as a program should. */
async function useUntilAnswered(client: LatchkeyClient, idempotencyKey: string): Promise<void> {
  for (;;) {
    try {
      await client.use('KEY', { idempotencyKey, deadlineMs: 500 });
      return;
    } catch (error) {
      if (!(error instanceof LatchkeyError && error.isTemporary)) throw error;
    }
  }
}

const program = `
const client = connect({ url: 'http://127.0.0.1:1', productSecret: 'secret' });
async function main(): Promise<void> {
  const said: Verdict = await client.verify('KEY');
  const told: string = said.verdict === 'valid' ? said.license.buyerEmail : said.reason;
  const failed: unknown = await client.use('KEY', { deadlineMs: 100 }).catch((error: unknown) => error);
  if (isProblem(failed, 'rate_limited')) console.log(failed.retryAfterMs satisfies number | null);
  console.log(told, failed instanceof AgentUnavailableError && failed.mayHaveCounted);
}
void main();
`;
const names = "{ AgentUnavailableError, connect, isProblem, type Verdict } from 'latchkey/client';";
/** The machine's own Node, which may be older than the one in node_modules. */
const machineNode = (process.env['PATH'] ?? '')
  .split(delimiter)
  .filter((directory) => !directory.includes('node_modules'))
  .map((directory) => join(directory, 'node'))
  .find((file) => existsSync(file));

it("the client has types and runs as an ES module and as CommonJS, also on the machine's older Node", async () => {
  await using home = temporaryDirectory();
  await installClient(home.path);
  await writeFile(join(home.path, 'module.mts'), `import ${names}${program}`);
  await writeFile(join(home.path, 'common.cts'), `import ${names}${program}`);
  const options = { module: 'nodenext', target: 'es2022', strict: true, types: ['node'], outDir: 'out' };
  const typeRoots = [join(root, 'node_modules/@types')];
  const project = { compilerOptions: { ...options, typeRoots }, include: ['*.mts', '*.cts'] };
  await writeFile(join(home.path, 'tsconfig.json'), JSON.stringify(project));
  await compile('--project', home.path);
  for (const node of [process.execPath, machineNode ?? process.execPath]) {
    for (const file of ['out/module.mjs', 'out/common.cjs']) {
      const { stdout } = await run(node, [join(home.path, file)]);
      expect(stdout).toBe('agent_unavailable false\n');
    }
  }
});

const leaseProgram = `
const checks: (LeaseCheck & { expected: string })[] = JSON.parse(readFileSync('checks.json', 'utf8'));
const wrong = checks.filter((check) => {
  try {
    const said = verifyLease(check);
    const conclusion = said.verdict === 'valid' ? 'valid' : said.reason;
    return check.expected !== (conclusion === 'expired' ? 'license_expired' : conclusion);
  } catch (error) {
    return !(error instanceof LeaseError) || check.expected !== error.code;
  }
});
console.log(checks.length, wrong.map(({ expected }) => expected).join());
`;

it("leases are checked by the ES module and by the CommonJS module, also on the machine's older Node", async () => {
  await using home = temporaryDirectory();
  await installClient(home.path);
  const now = Date.now();
  const { vectors, ...trust } = makeLeaseVectors();
  const nonce = 'a-nonce-of-this-program';
  const checks = vectors.map(({ answer, typed, expected }) => ({
    ...trust,
    ...answer(nonce),
    licenseKey: typed,
    nonce,
    now,
    expected,
  }));
  await writeFile(join(home.path, 'checks.json'), JSON.stringify(checks));
  const imports = `
import { readFileSync } from 'node:fs';
import { LeaseError, verifyLease, type LeaseCheck } from 'latchkey/client';
`;
  await writeFile(join(home.path, 'module.mts'), `${imports}${leaseProgram}`);
  await writeFile(join(home.path, 'common.cts'), `${imports}${leaseProgram}`);
  const options = { module: 'nodenext', target: 'es2022', strict: true, types: ['node'], outDir: 'out' };
  const typeRoots = [join(root, 'node_modules/@types')];
  const project = { compilerOptions: { ...options, typeRoots }, include: ['*.mts', '*.cts'] };
  await writeFile(join(home.path, 'tsconfig.json'), JSON.stringify(project));
  await compile('--project', home.path);
  for (const node of [process.execPath, machineNode ?? process.execPath]) {
    for (const file of ['out/module.mjs', 'out/common.cjs']) {
      const { stdout } = await run(node, [join(home.path, file)], { cwd: home.path });
      expect(stdout).toBe(`${checks.length} \n`);
    }
  }
});
