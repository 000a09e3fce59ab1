import { afterAll, expect, test } from 'vitest';
import { standInFaults } from '../../../src/features/sandbox/stores/stand-in.ts';
import { eventually } from '../../support/harness/agent-harness.ts';
import { gumroadPrograms } from '../../support/reference/existing-programs.ts';
import { keys, openGumroad, permalink, productId, startGumroad } from '../../support/stores/gumroad.ts';
import {
  concludeAmidFaults,
  concludeEverywhere,
  install,
  keeps,
  type StorePrograms,
} from '../../support/stores/store-programs.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

/*
 * Programs that were written for Gumroad, each in its own way. Only their base URL is changed, so that an agent answers
 * them.
 */

// Very old programs name a product by its permalink, and Gumroad still knows products that may be named so.
const products = [{ productId, permalink, needsProductId: false }];

const gumroad: StorePrograms = {
  environment: { PRODUCT_ID: productId, PRODUCT_PERMALINK: permalink },
  keys,
  good: ['good', 'running'],
  open: () => openGumroad(products),
  start: (configuration) => startGumroad(configuration, products),
};

const build = temporaryDirectory();
afterAll(() => build[Symbol.asyncDispose]());

test.concurrent.for(gumroadPrograms)(
  '$file concludes at an agent what it concludes at Gumroad: online, during an outage, and after the grace',
  { timeout: 300_000 },
  async (program, context) => {
    await using software = await install(gumroad, program, { context, directory: build.path });
    const { found, meant } = await concludeEverywhere(gumroad, software);
    expect(found).toEqual(meant);
    expect(meant['online']).toMatchObject({
      good: expect.stringMatching(/^VALID/),
      unknown: expect.stringMatching(/^INVALID/),
    });
  },
);

test.concurrent.for(gumroadPrograms)(
  'whatever stands in for Gumroad, $file takes no page and no limit for a verdict',
  { timeout: 300_000 },
  async (program, context) => {
    await using software = await install(gumroad, program, { context, directory: build.path });
    const found = await concludeAmidFaults(gumroad, software);
    expect(found).toEqual(Object.fromEntries(standInFaults.map((fault) => [fault, keeps])));
  },
);

test.concurrent.for(gumroadPrograms)(
  'uses that $file counts arrive at Gumroad once, also those during an outage',
  { timeout: 300_000 },
  async (program, context) => {
    await using software = await install(gumroad, program, { context, directory: build.path });
    await using harness = await startGumroad({}, products);
    const { store, network } = harness;
    const use = async (): Promise<string> =>
      await software.conclude(harness.agent.process.tcp, keys.good, 'count');
    expect(await use()).toMatch(/^VALID.*, activated$/);
    expect(store.license(keys.good).uses).toBe(4);
    await network.become({ kind: 'refuse' });
    expect(await use()).toMatch(/^VALID/);
    await harness.restart();
    expect(await use()).toMatch(/^VALID|^TOO MANY USES/);
    expect(store.license(keys.good).uses).toBe(4);
    await network.become({ kind: 'pass' });
    await eventually(() => store.license(keys.good).uses === 6);
    await harness.agent.atRest();
    expect(store.countedAt(keys.good)).toBe(3);
  },
);
