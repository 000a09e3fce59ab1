import { existsSync } from 'node:fs';
import { defineConfig, type ViteUserConfig } from 'vitest/config';

const memory = '/dev/shm';

/** The tests that are run against each mutant: they tell a rule apart in milliseconds, and every time. */
const config: ViteUserConfig = defineConfig({
  test: {
    include: [
      'test/{domain,property,service,sync}/*.test.ts',
      'test/contract/{access,store}.test.ts',
      'test/config/defaults.test.ts',
      'test/audit.test.ts',
    ],
    // Draws other commands each time: a score must not change by itself.
    exclude: ['test/property/commands.test.ts'],
    // Hundreds of stores a minute; none has to outlive the machine.
    env: existsSync(memory) ? { TMPDIR: memory } : {},
    // The tests keep nothing of one another, and starting a thread for each file takes longer than they do.
    isolate: false,
    testTimeout: 60_000,
  },
});

export default config;
