import { afterAll, expect, test } from 'vitest';
import { standInFaults } from '../../../src/features/sandbox/stores/stand-in.ts';
import { eventually } from '../../support/harness/agent-harness.ts';
import { polarPrograms } from '../../support/reference/existing-programs.ts';
import { keys, openPolar, organizationId, startPolar } from '../../support/stores/polar.ts';
import {
  concludeAmidFaults,
  concludeEverywhere,
  install,
  keeps,
  type StorePrograms,
} from '../../support/stores/store-programs.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

/* Programs that were written for Polar, each in its own way. Only their base URL is changed, so that an agent answers them. */

const polar: StorePrograms = {
  environment: { ORGANIZATION_ID: organizationId },
  keys,
  good: ['good', 'running'],
  open: () => openPolar(),
  start: (configuration) => startPolar(configuration),
};

const build = temporaryDirectory();
afterAll(() => build[Symbol.asyncDispose]());

test.concurrent.for(polarPrograms)(
  '$file concludes at an agent what it concludes at Polar: online, during an outage, and after the grace',
  { timeout: 300_000 },
  async (program, context) => {
    await using software = await install(polar, program, { context, directory: build.path });
    const { found, meant } = await concludeEverywhere(polar, software);
    expect(found).toEqual(meant);
    expect(meant['online']).toMatchObject({
      good: expect.stringMatching(/^VALID/),
      revoked: expect.stringMatching(/^INVALID/),
      expired: expect.stringMatching(/^INVALID/),
    });
  },
);

test.concurrent.for(polarPrograms)(
  'whatever stands in for Polar, $file takes no page and no limit for a verdict',
  { timeout: 300_000 },
  async (program, context) => {
    await using software = await install(polar, program, { context, directory: build.path });
    const found = await concludeAmidFaults(polar, software);
    expect(found).toEqual(Object.fromEntries(standInFaults.map((fault) => [fault, keeps])));
  },
);

test.concurrent.for(polarPrograms)(
  'uses that $file counts arrive at Polar once, also those during an outage',
  { timeout: 300_000 },
  async (program, context) => {
    await using software = await install(polar, program, { context, directory: build.path });
    await using harness = await startPolar();
    const { store, network } = harness;
    const use = async (): Promise<string> =>
      await software.conclude(harness.agent.process.tcp, keys.good, 'count');
    expect(await use()).toMatch(/^VALID.*, activated$/);
    expect(store.license(keys.good).usage).toBe(5);
    await network.become({ kind: 'refuse' });
    expect(await use()).toMatch(/^VALID/);
    await harness.restart();
    expect(await use()).toMatch(/^VALID/);
    expect(store.license(keys.good).usage).toBe(5);
    await network.become({ kind: 'pass' });
    await eventually(() => store.license(keys.good).usage === 9);
    await harness.agent.atRest();
    expect(store.countedAt(keys.good)).toBe(6);
  },
);
