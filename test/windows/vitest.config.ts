import { defineConfig, type ViteUserConfig } from 'vitest/config';
import { patienceMs } from '../support/patience.ts';
import { notOnWindows, tooSlow } from './not-on-windows.ts';

// The tests that Windows' Node runs: under Wine by test/windows/wine.test.ts, or on Windows by
// `npx vitest run --config test/windows/vitest.config.ts`.

const timeouts = { testTimeout: 120_000, hookTimeout: 120_000 };

/** The main uses of the program as processes. */
const stories = [
  'test/windows/stories/*.test.ts',
  'test/fault/killed-agent.test.ts',
  'test/e2e/{proof,restore,stop-and-reload}.test.ts',
  'test/features/sandbox/testing.test.ts',
];

/** Folders of tests that run in process and whose subject can be different on Windows. */
const folders = 'test/{cli,client,config,contract,daemon,features,http,store}';

/** Where `wine.test.ts` has built the program. */
const builtProgram = process.env['BUILT_PROGRAM'];

const projects = [
  { name: 'stories', include: stories, provide: { builtProgram }, ...timeouts, sequence: { groupOrder: 1 } },
  {
    name: 'in process',
    include: [`${folders}/**/*.test.ts`],
    exclude: [...stories, ...Object.keys(notOnWindows), ...tooSlow],
    isolate: false,
    ...timeouts,
    sequence: { groupOrder: 0 },
  },
];

const config: ViteUserConfig = defineConfig({
  test: {
    maxWorkers: 2,
    unstubEnvs: true,
    expect: { poll: { timeout: patienceMs } },
    projects: projects.map((test) => ({ extends: true, test })),
  },
});

export default config;
