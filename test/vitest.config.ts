import { defineConfig, type ViteUserConfig } from 'vitest/config';

const real = ['test/e2e/**/*.test.ts', 'test/fault/**/*.test.ts', 'test/contract/hostile.test.ts'];

const config: ViteUserConfig = defineConfig({
  test: {
    maxWorkers: 2,
    projects: [
      {
        extends: true,
        test: {
          name: 'in process',
          include: ['test/**/*.test.ts'],
          exclude: real,
          testTimeout: 60_000,
          hookTimeout: 60_000,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: 'real processes',
          include: real,
          testTimeout: 120_000,
          hookTimeout: 60_000,
          // Real daemons on real clocks: one file at a time. None has a second chance: what counts twice once
          // in a while is a fault.
          maxWorkers: 1,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});

export default config;
